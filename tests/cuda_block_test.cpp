// Kernels as blocks of threads: the device's source, run by fibers (cuda/emulated_block.h). Warp shuffles, columns reduced through
// shared memory, programs whose steps wait for each other: the CPU's bits in every order of the threads.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cuda/one_kernel.h"
#include "cuda/printer.h"
#include "cuda/program_text.h"
#include "cuda/table.h"
#include "cuda_emulated.h"
#include "cuda_launches.h"
#include "cuda_products.h"
#include "cuda_programs.h"
#include "kernel_check.h"
#include "kernel_random.h"
#include "kernel_rows.h"
#include "kernel_transposes.h"
#include "kernels/gemm_tiles.cuh"
#include "kernels/loop_table.cuh"
#include "kernels/program_table.cuh"
#include "kernels/scan_tiles.cuh"
#include "op_data.h"
#include "scale.h"
#include "shardarray/shardarray.h"

namespace cuda_block_test {

using namespace shardarray;
using namespace shardarray::test;
using namespace shardarray::testing;

namespace {

/// A launch by such a kernel gives what the CPU's interpreter gives.
void check_launch(const KernelCase& c, const cuda::KernelLaunch& l, Emulated run, unsigned blocks,
                  unsigned threads) {
  const auto want = interpreted(c);
  std::vector<std::uint64_t> table(l.table.size() / 8 + 1);
  std::memcpy(table.data(), l.table.data(), l.table.size());
  for (const unsigned order : thread_orders) {
    CAPTURE(order);
    const auto got = run_pieces(c, {1}, [&](void* const* bases, std::int64_t, std::int64_t) {
      const device::Bases given = few_bases_of({bases, bases + c.args.size()});
      const char* const wrong = run(blocks, l.items, threads, order, table.data(), nullptr, &given);
      REQUIRE_MESSAGE((wrong == nullptr), wrong);
    });
    require_same(c, got, want);
  }
}

/// A reduction of each of `columns` columns of `rows` numbers, and the columns without it.
KernelCase columns_of(DType t, Reducer reducer, std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  KernelCase c;
  KernelBuilder b(1, 1);
  const int x = b.arg({t}), out = b.arg({t, true}), back = b.arg({t, true});
  b.begin_stage(true);
  const int total = b.reduce(reducer, b.load(x));
  b.begin_stage(false);
  b.store(out, total);
  b.begin_stage(true);
  const int again = b.load(x);
  b.store(back, t == bool_ ? b.binary(Code::xor_, again, total) : b.binary(Code::sub, again, total));
  c.kernel = b.finish();
  c.extents = {columns, rows};
  c.start = {0, 0};
  const std::int64_t all = rows * columns;
  c.args = {{{1, columns}, 0, all}, {{1, 0}, 0, columns}, {{1, columns}, 0, all}};
  Random random(seed);
  const Bytes numbers = random_elements(random, t, all);
  c.inputs = {numbers, Bytes(static_cast<std::size_t>(columns) * itemsize(t)), Bytes(numbers.size())};
  return c;
}

/// Numbers whose sums and products stay finite for long, and a few that end that.
Bytes numbers_to_scan(Random& random, DType t, std::int64_t n) {
  Bytes all = random_elements(random, t, n);
  if (!is_floating(t)) return all;
  for (std::int64_t i = 0; i < n; i++) {
    const double x = std::exp2(static_cast<double>(pick(random, 2001) - 1000) / 2000);
    const double signed_x = pick(random, 2) == 0 ? x : -x;
    const auto narrow = static_cast<float>(signed_x);
    std::byte* const to = all.data() + static_cast<std::size_t>(i) * itemsize(t);
    if (pick(random, 5000) == 0) continue;
    if (t == float32) std::memcpy(to, &narrow, sizeof narrow);
    else std::memcpy(to, &signed_x, sizeof signed_x);
  }
  return all;
}

struct CaseLaunch {
  KernelCase c;
  cuda::KernelLaunch launch;
};

}  // namespace

TEST_CASE("cuda blocks: columns are folded through shared memory, of any number of rows and columns") {
  std::vector<CaseLaunch> rows;
  std::string text = emulator + cuda::printed_prelude();
  std::uint64_t seed = 0;
  const auto add = [&](DType t, Reducer reducer, std::int64_t length, std::int64_t columns) {
    CaseLaunch r{columns_of(t, reducer, length, columns, seed++), {}};
    r.launch = launches_of_case(r.c).at(0);
    CHECK(r.launch.shape.columns);
    CHECK(r.launch.printed_threads == device::column_threads);
    const std::string name = "columns_" + std::to_string(rows.size());
    const std::string kernel = cuda::print_kernel(*r.launch.loop, r.launch.shape, name);
    CHECK(kernel.find("for (ColumnTeam team(") != kernel.npos);
    text += kernel + "using shardarray::device::" + name + ";\n" + runner_of(name);
    rows.push_back(std::move(r));
  };
  for (const auto& [length, columns] :
       {std::pair<std::int64_t, std::int64_t>{2, 16}, {31, 33}, {33, 64}, {1025, 70}}) {
    add(float32, Reducer::sum, length, columns);
    add(float64, Reducer::prod, length, columns);
    add(int32, Reducer::sum, length, columns);
    add(uint8, Reducer::max, length, columns);
    add(bool_, Reducer::any, length, columns);
  }
  const CompiledText compiled(text);
  for (std::size_t k = 0; k < rows.size(); k++) {
    CAPTURE(k);
    const Emulated run = emulated(compiled, "columns_" + std::to_string(k));
    check_launch(rows[k].c, rows[k].launch, run, rows[k].launch.printed_blocks, device::column_threads);
    check_launch(rows[k].c, rows[k].launch, run, 1,
                 device::column_threads);  // one block after another column
  }
}

TEST_CASE("cuda blocks: random loops by warps, printed and interpreted") {
  std::vector<CaseLaunch> rows;
  std::string text = emulator + cuda::printed_prelude();
  for (std::uint64_t seed = 0; rows.size() < (full_scale() ? 200u : 20u); seed++) {
    CaseLaunch r{random_case(seed), {}};
    const auto launches = launches_of_case(r.c);
    if (launches.empty() || (!cuda::has_inner_stage(r.c.kernel) && rows.size() % 4 != 0)) continue;
    r.launch = launches[0];
    const std::string name = "loop_" + std::to_string(rows.size());
    text += cuda::print_kernel(*r.launch.loop, r.launch.shape, name) + "using shardarray::device::" + name +
            ";\n" + runner_of(name);
    rows.push_back(std::move(r));
  }
  const CompiledText printed(text);
  text = std::string(emulator) + "#include \"kernels/kernels.cu\"\nusing namespace shardarray;\n";
  for (const char* part : {"points", "rows"})
    for (const char* slots : {"_32", "_128", "_512"})
      text += runner_of(std::string("shardarray_") + part + slots);
  const CompiledText interpreting(text);
  for (std::size_t k = 0; k < rows.size(); k++) {
    CAPTURE(k);
    const auto& [c, l] = rows[k];
    const unsigned threads = l.shape.columns || l.shape.row_warps > 1 ? l.printed_threads : 64;
    check_launch(c, l, emulated(printed, "loop_" + std::to_string(k)), 2, threads);
    check_launch(c, l, emulated(interpreting, l.kernel), 2, 64);
  }
}

TEST_CASE("cuda blocks: rows are kept in shared memory, each by its warp or its block") {
  std::vector<CaseLaunch> rows;
  std::string text = emulator + cuda::printed_prelude();
  for (const RowsOf& r : rows_of_all_sizes()) {
    rows.push_back({rows_in_stages(r, rows.size()), {}});
    rows.back().launch = launches_of_case(rows.back().c).at(0);
    const cuda::KernelLaunch& l = rows.back().launch;
    const std::string name = "rows_" + std::to_string(rows.size() - 1);
    const std::string kernel = cuda::print_kernel(*l.loop, l.shape, name);
    CHECK((kernel.find("keep_row<") != kernel.npos) == (l.shape.kept_points > 0));
    CHECK((kernel.find("BlockTeam team") != kernel.npos) == (l.shape.row_warps > 1));
    text += kernel + "using shardarray::device::" + name + ";\n" + runner_of(name);
  }
  const CompiledText compiled(text);
  for (std::size_t k = 0; k < rows.size(); k++) {
    CAPTURE(k);
    const auto& [c, l] = rows[k];
    const Emulated run = emulated(compiled, "rows_" + std::to_string(k));
    check_launch(c, l, run, l.printed_blocks, l.printed_threads);
    check_launch(c, l, run, 1, l.shape.row_warps > 1 ? l.printed_threads : 64);  // a row after the other
  }
}

TEST_CASE("cuda blocks: transposed operands come through shared memory, tile by tile") {
  std::vector<CaseLaunch> rows;
  std::string text = emulator + cuda::printed_prelude();
  for (const TransposeOf& t : transposes_of_all_kinds()) {
    rows.push_back({transposes(t, rows.size()), {}});
    rows.back().launch = launches_of_case(rows.back().c).at(0);
    const cuda::KernelLaunch& l = rows.back().launch;
    CHECK(l.printed_threads == device::printed_threads);
    const std::string name = "tiles_" + std::to_string(rows.size() - 1);
    const std::string kernel = cuda::print_kernel(*l.loop, l.shape, name);
    CHECK(kernel.find("read_transposed<") != kernel.npos);
    text += kernel + "using shardarray::device::" + name + ";\n" + runner_of(name);
  }
  const CompiledText compiled(text);
  for (std::size_t k = 0; k < rows.size(); k++) {
    CAPTURE(k);
    const auto& [c, l] = rows[k];
    const Emulated run = emulated(compiled, "tiles_" + std::to_string(k));
    check_launch(c, l, run, l.printed_blocks, l.printed_threads);
    check_launch(c, l, run, 1, l.printed_threads);  // a tile after the other
  }
}

TEST_CASE("cuda blocks: products come through shared memory, tile by tile") {
  std::string text = std::string(emulator) + "#include \"kernels/gemm_tiles.cuh\"\n" + R"(
using namespace shardarray;
#define TILES(name, type, shape)                                                                            \
  extern "C" void name(const std::byte* table, std::byte* scratch, const device::Bases bases) {             \
    device::product_tiles<type, device::shape>(                                                             \
        {blockIdx.x, gridDim.x, blockIdx.y, threadIdx.x, blockDim.x}, table, scratch, bases);               \
  }
TILES(large_f32, float, LargeTile)
TILES(large_f64, double, LargeTile)
TILES(large_u8, std::uint8_t, LargeTile)
TILES(large_bf16, device::Brain, LargeTile)
TILES(deep_f32, float, DeepTile)
TILES(deep_f64, double, DeepTile)
TILES(deep_bf16, device::Brain, DeepTile)
)";
  const std::vector<std::string> shapes = {"large_", "deep_"};
  for (const std::string& shape : shapes)
    for (const std::string type : {"f32", "f64", "u8", "bf16"})
      if (shape + type != "deep_u8") text += runner_of(shape + type);
  const CompiledText compiled(text);
  struct Row {
    std::string type;
    DType in, out;
    Gemm::Item product;
  };
  Random random(23);
  for (const Row& r : {Row{"f32", float32, float32, dense(70, 129, 37)},
                       {"f32", float32, float32, dense(64, 64, 16, true, true)},
                       {"f32", float32, float32, dense(3, 5, 8200, false, true)},
                       {"f64", float64, float64, dense(65, 66, 17, true)},
                       {"u8", uint8, uint8, dense(100, 30, 50, false, true)},
                       {"f32", float32, float32, dense(19, 4, 200, true)},
                       {"f64", float64, float64, dense(1, 17, 128)},
                       {"bf16", bfloat16, float32, dense(66, 64, 33)}}) {
    Gemm gemm;
    gemm.in = r.in;
    gemm.out = r.out;
    gemm.fixed_order = true;
    gemm.items = {r.product};
    Gemm::Item& g = gemm.items[0];
    g.batch = 2;
    g.a.base = 0;
    g.b.base = 1;
    g.c.base = 2;
    Memory memory = {random_elements(random, r.in, 2 * g.m * g.k),
                     random_elements(random, r.in, 2 * g.k * g.n),
                     Bytes(static_cast<std::size_t>(2 * g.m * g.n) * itemsize(r.out))};
    g.stride_c = g.m * g.n;
    cuda::KernelLaunch l = launches_of_step(gemm).at(0);
    l.kernel = l.any_block_kernel;
    Memory want = memory;
    run_launches({l}, pointers(want), {});  // element by element
    for (const std::string& shape : shapes)
      for (const unsigned order : thread_orders)
        for (const unsigned blocks : {1u, 3u}) {
          if (shape + r.type == "deep_u8") continue;
          Memory got = memory;
          const device::Bases bases = few_bases_of(pointers(got));
          const std::string kernel = shape + r.type;
          const char* const wrong = emulated(compiled, kernel)(blocks, 1, device::tile_threads, order,
                                                               l.table.data(), nullptr, &bases);
          REQUIRE_MESSAGE((wrong == nullptr), wrong);
          CAPTURE(kernel);
          REQUIRE(same_values(r.out, got[2], want[2]));
        }
  }
}

TEST_CASE("cuda blocks: running reductions come through shared memory, tile by tile") {
  std::string text = std::string(emulator) + "#include \"kernels/scan_tiles.cuh\"\n" + R"(
using namespace shardarray;
#define TILES(name, type)                                                                                   \
  extern "C" void name(const std::byte* table, std::byte* scratch, const device::Bases bases) {             \
    device::scan_tiles<type>({blockIdx.x, gridDim.x, blockIdx.y, threadIdx.x, blockDim.x}, table, scratch,  \
                             bases);                                                                        \
  }
TILES(shardarray_scan_tiles_1, std::uint8_t)
TILES(shardarray_scan_tiles_2, std::uint16_t)
TILES(shardarray_scan_tiles_4, std::uint32_t)
TILES(shardarray_scan_tiles_8, std::uint64_t)
)";
  for (const char* const bytes : {"1", "2", "4", "8"})
    text += runner_of(std::string("shardarray_scan_tiles_") + bytes);
  const CompiledText compiled(text);
  struct Row {
    DType type;
    Reducer reducer;
    Shape shape;  // lines along the dimension in the middle
  };
  Random random(31);
  bool has_totals = false;
  for (const Row& r : {Row{float32, Reducer::sum, {3, 4100, 1}},   // whole lines
                       Row{float32, Reducer::sum, {2, 9216, 1}},   // several tiles of a line
                       Row{float32, Reducer::sum, {2, 9001, 1}},   // which are not aligned
                       Row{float32, Reducer::max, {300, 12, 1}},   // many lines in a tile
                       Row{float32, Reducer::min, {301, 7, 1}},    //
                       Row{float32, Reducer::sum, {5, 2100, 3}},   // few neighbours
                       Row{float32, Reducer::sum, {2, 1030, 40}},  // in several tiles beside each other
                       Row{float32, Reducer::sum, {1, 1030, 42}},  // which are not aligned
                       Row{float32, Reducer::prod, {7, 100, 40}},  //
                       Row{float64, Reducer::sum, {2, 5100, 1}},   //
                       Row{float64, Reducer::sum, {1, 1100, 40}},  //
                       Row{float64, Reducer::max, {2, 1200, 3}},   //
                       Row{int32, Reducer::sum, {1, 2100, 40}},    //
                       Row{int64, Reducer::min, {2, 5001, 1}},     //
                       Row{uint64, Reducer::prod, {3, 1024, 3}},   //
                       Row{int16, Reducer::max, {2, 17000, 1}},    //
                       Row{uint16, Reducer::sum, {1, 1500, 40}},   //
                       Row{int8, Reducer::min, {1, 33000, 1}},     //
                       Row{uint8, Reducer::prod, {1, 1100, 48}},   //
                       Row{uint8, Reducer::sum, {1, 12000, 3}},    //
                       Row{float32, Reducer::sum, {3, 0, 2}}}) {   // totals alone
    for (const std::int64_t direction : {1, -1}) {
      has_totals = r.shape[1] == 0 || !has_totals;
      LibraryCall x;
      x.name = "scan";
      x.in_types = {r.type};
      x.out_types.assign(has_totals ? 2 : 1, r.type);
      LibraryCall::Item item;
      item.in = {{0, 0}};
      item.in_shapes = {r.shape};
      item.out = {{1, 0}};
      item.out_shapes = {r.shape};
      if (has_totals) {
        item.out.push_back({2, 0});
        item.out_shapes.push_back({r.shape[0], r.shape[2]});
      }
      item.params = {1, static_cast<std::int64_t>(r.reducer), direction};
      x.items = {item};
      const std::int64_t elements = num_elements(r.shape), lines = r.shape[0] * r.shape[2];
      Memory memory = {numbers_to_scan(random, r.type, elements), random_elements(random, r.type, elements),
                       random_elements(random, r.type, lines)};
      const std::vector<cuda::KernelLaunch> launches = launches_of_step(x);
      cuda::KernelLaunch whole = launches[0];  // lines, as where there are more of them
      auto head = cuda::TableReader(whole.table).head<device::ScanTable>();
      head.stage = device::ScanStage::all;
      std::memcpy(whole.table.data(), &head, sizeof head);
      cuda::KernelLaunch by_threads = whole;  // that make a line each
      by_threads.kernel = "shardarray_scan";
      Memory want = memory;
      run_launches({by_threads}, pointers(want), {});
      CAPTURE(name(r.type));
      CAPTURE(r.shape);
      CAPTURE(direction);
      const auto check = [&](const std::vector<cuda::KernelLaunch>& all, unsigned order, unsigned blocks) {
        Memory got = memory;
        const device::Bases bases = few_bases_of(pointers(got));
        std::vector<std::uint64_t> scratch(all[0].scratch_bytes / 8 + 1, ~0ull);
        for (const cuda::KernelLaunch& l : all) {
          const char* const wrong = emulated(compiled, l.kernel)(blocks, 1, device::tile_threads, order,
                                                                 l.table.data(), scratch.data(), &bases);
          REQUIRE_MESSAGE((wrong == nullptr), wrong);
        }
        CAPTURE(order);
        CAPTURE(blocks);
        CAPTURE(all.size());
        REQUIRE(same_values(r.type, got[1], want[1]));
        REQUIRE(same_values(r.type, got[2], want[2]));
      };
      for (const unsigned order : thread_orders)
        for (const unsigned blocks : {1u, 3u}) {
          check({whole}, order, blocks);
          if (launches.size() > 1) check(launches, order, blocks);
        }
    }
  }
}

TEST_CASE("cuda blocks: the steps of a program that is one kernel wait for each other") {
  struct Row {
    std::string name;
    std::shared_ptr<const Program> program;
    cuda::ProgramText printed;
    unsigned blocks;
  };
  std::vector<Row> rows;
  std::vector<std::unique_ptr<CompiledText>> texts;
  const Mesh mesh = make_mesh({{"x", 2}, {"y", 4}});
  const auto add = [&](const std::string& name, const program_test::Prepared& prepared) {
    const auto program = compiled_for(prepared, cuda::cuda_target()).program;
    for (const unsigned blocks : {1u, 2u})  // a block alone, a cluster
      rows.push_back({name, program, cuda::print_program(*program, cuda::buffer_alignment, blocks), blocks});
    return cuda::one_kernel_blocks(*program, 1) == 1;
  };
  const auto step = [](const Array& w, const Array& x) {
    const Array h = relu(matmul(x, w));
    const Array s = softmax(h - mean(h, 0), -1);
    return sort(s, 0) + cumsum(s, 1) + sum(s * s);
  };
  const auto loop = [](const Array& w, const Array& x) {
    return fori_loop(
        0, 3, [&](const Array& i, const Array& a) { return tanh(matmul(a, w) + sum(a, 0)) * i; }, x);
  };
  const Array w = program_test::numbers({12, 12}), x = program_test::numbers({16, 12});
  for (const P& spec : {P(), P("x"), P("y", "x"), P(none, "y")}) {
    const Array placed = device_put(x, NamedSharding(mesh, spec));
    CHECK(add("a step", program_test::prepare(jit(step), w, placed)));
    CHECK(add("a loop", program_test::prepare(jit(loop), w, placed)));
  }
  // Warps make products of few elements with long sums; many updates are sorted by their rows.
  const auto product = [](const Array& a, const Array& b) { return matmul(a, b) + sum(a); };
  CHECK(add("products by warps", program_test::prepare(jit(product), program_test::numbers({3, 70}),
                                                       program_test::numbers({70, 3}))));
  CHECK(rows.back().printed.text.find("known_product_by_lanes<") != std::string::npos);
  const auto by_rows = [](const Array& u, const Array& i) { return segment_sum(u * 2, i, 7); };
  CHECK(add("updates by rows",
            program_test::prepare(jit(by_rows), program_test::numbers({300, 2}), arange(0, 300) % 7)));
  for (const Row& r : rows) {
    const CompiledText text(emulator + r.printed.text + "using shardarray::shardarray_program;\n" +
                            runner_of(cuda::program_kernel_name, r.blocks > 1));
    const auto launches = cuda::launches_of(*r.program);
    const auto want =
        outputs_of(*r.program, [&](const std::vector<void*>& bases) { run_launches(launches, bases, {}); });
    for (const unsigned order : thread_orders) {
      const auto got = outputs_of(*r.program, [&](const std::vector<void*>& bases) {
        std::vector<std::uint64_t> addresses(1 + r.printed.bases),
            scratch(r.printed.scratch_bytes / 8 + 1, ~0ull);
        for (std::size_t k = 0; k < bases.size(); k++)
          addresses[1 + k] = reinterpret_cast<std::uint64_t>(bases[k]);
        const ProgramBlock tables(r.printed.tables.size() + 1);
        std::copy(r.printed.tables.begin(), r.printed.tables.end(), tables.data());
        const char* const wrong = emulated(text, cuda::program_kernel_name)(
            r.blocks, 1, device::program_threads, order, tables.data(), scratch.data(), addresses.data());
        REQUIRE_MESSAGE((wrong == nullptr), wrong);
      });
      const std::string difference = difference_of(*r.program, got, want);
      CHECK_MESSAGE(difference.empty(),
                    r.name << ", " << r.blocks << " blocks, order " << order << ": " << difference);
    }
  }
}

TEST_CASE(
    "cuda blocks: races, barriers that some threads do not reach, memory without a value and calls of parts "
    "of a warp are found") {
  const CompiledText text(emulator + std::string(R"(
struct None {};
extern "C" void race(const std::byte*, std::byte* to, const None) {
  reinterpret_cast<unsigned&>(*to) = threadIdx.x;
}
extern "C" void part(const std::byte*, std::byte*, const None) {
  if (threadIdx.x > 40) __syncthreads();
}
extern "C" void dirty(const std::byte*, std::byte* to, const None) {
  __shared__ unsigned n;
  if (threadIdx.x == 0) atomicAdd(&n, 1);
  __syncthreads();
  reinterpret_cast<unsigned&>(*to) = n;
}
extern "C" void mask(const std::byte*, std::byte*, const None) { __shfl_sync(1u, 1, 0); }
extern "C" void calls(const std::byte*, std::byte*, const None) {
  threadIdx.x % 2 == 0 ? __shfl_sync(~0u, 1, 0) : __shfl_down_sync(~0u, 2, 1);
}
)") + runner_of("race") + runner_of("part") +
                          runner_of("dirty") + runner_of("mask") + runner_of("calls"));
  unsigned last[3] = {};
  for (const unsigned order : thread_orders)
    CHECK(emulated(text, "race")(1, 1, 64, order, nullptr, &last[std::min(order, 2u)], "") == nullptr);
  CHECK(last[0] == 63);
  CHECK(last[1] == 0);
  CHECK(last[2] != last[0]);
  const auto wrong = [&](const char* kernel) {
    unsigned to = 0;
    const char* const said = emulated(text, kernel)(1, 1, 64, 0, nullptr, &to, "");
    return std::string(said == nullptr ? std::to_string(to) : said);
  };
  CHECK(wrong("part") == "some threads do not reach a barrier");
  CHECK(wrong("dirty") != "1");
  CHECK(wrong("calls") == "some threads do not reach a barrier");
  CHECK(wrong("mask") == "a call names some lanes of a warp that all are in");  // the last: it stays wrong
}

}  // namespace cuda_block_test
