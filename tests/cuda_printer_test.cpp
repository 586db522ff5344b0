// Loops by printed kernels, compiled for the host: the bits of the CPU's interpreter and of CUDA's interpreting kernels.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <string>

#include "cuda/kept_rows.h"
#include "cuda_launches.h"
#include "cuda_printed.h"
#include "cuda_programs.h"
#include "kernel_check.h"
#include "kernel_random.h"
#include "kernel_rows.h"
#include "op_data.h"
#include "scale.h"

namespace cuda_printer_test {

using namespace shardarray;
using namespace shardarray::test;
using namespace shardarray::testing;
using Move = cuda::LoopShape::Move;

namespace {

/// Nothing is known of the items but their axes.
cuda::LoopShape any_shape(cuda::LoopShape s) {
  s.small = false;
  s.moves.assign(s.moves.size(), Move::any);
  return s;
}

/// Cases whose kernels are printed, compiled and run.
class PrintedCases {
 public:
  void add(const KernelCase& c) {
    cases_.push_back(c);
    launches_.push_back(launches_of_case(c));
    texts_.add(launches_.back());
    // The same loop as if nothing were known of its places.
    if (cases_.size() % 4 != 0 || launches_.back().empty()) return;
    cases_.push_back(c);
    launches_.push_back(launches_.back());
    launches_.back()[0].shape = any_shape(launches_.back()[0].shape);
    texts_.add(launches_.back());
  }
  void check() {
    texts_.compile();
    for (std::size_t k = 0; k < cases_.size(); k++) {
      const std::string shown = to_string(cases_[k].kernel) + "extents " + to_string(cases_[k].extents);
      CAPTURE(k);
      CAPTURE(shown);
      check(cases_[k], launches_[k]);
    }
  }

 private:
  void check(const KernelCase& c, const std::vector<cuda::KernelLaunch>& launches) const {
    check_blocks(c, interpreted(c), [&](const std::vector<void*>& bases, const BlockOrder& order) {
      texts_.run(launches, bases, order);
    });
  }

  std::vector<KernelCase> cases_;
  std::vector<std::vector<cuda::KernelLaunch>> launches_;
  PrintedTexts texts_;
};

/// Rows of n numbers: a reduction, and the rows without it.
KernelCase long_rows(DType t, Reducer reducer, std::int64_t n, Random& random) {
  KernelCase c;
  KernelBuilder b(1, 1);
  const int x = b.arg({t}), out = b.arg({t, true}), back = b.arg({t, true});
  b.begin_stage(true);
  const int total = b.reduce(reducer, b.load(x));
  b.begin_stage(false);
  b.store(out, total);
  b.begin_stage(true);
  b.store(back, b.binary(Code::sub, b.load(x), total));
  c.kernel = b.finish();
  c.extents = {3, n};
  c.start = {0, 0};
  c.args = {{{n, 1}, 0, 3 * n}, {{1, 0}, 0, 3}, {{n, 1}, 0, 3 * n}};
  const std::size_t size = itemsize(t);
  Bytes bytes(static_cast<std::size_t>(3 * n) * size);
  for (std::size_t i = 0; i < static_cast<std::size_t>(3 * n); i++) {
    const double d =
        std::ldexp(static_cast<double>(random() >> 11), -53) + (reducer == Reducer::prod ? 0.5 : -0.3);
    const auto f = static_cast<float>(d);
    std::memcpy(bytes.data() + i * size, t == float32 ? static_cast<const void*>(&f) : &d, size);
  }
  c.inputs = {bytes, Bytes(3 * size), Bytes(bytes.size())};
  return c;
}

/// out[i][j] = x[i][j] * scale[i] + index i, for float32.
Kernel scaled_rows() {
  KernelBuilder b(2, 0);
  const int x = b.arg({float32}), scale = b.arg({float32}), out = b.arg({float32, true});
  b.begin_stage(false);
  const int product = b.binary(Code::mul, b.load(x), b.load(scale));
  b.store(out, b.binary(Code::add, product, b.cast(b.index(0), float32)));
  return b.finish();
}
/// Of n rows of m numbers, `gap` apart in x.
Loop::Item scaled_rows_item(std::uint32_t first_base, std::int64_t n, std::int64_t m, std::int64_t gap,
                            std::int64_t start) {
  Loop::Item item{0, {n, m}, {start, 0}, {}};
  const auto bytes = [](std::int64_t k) { return static_cast<std::uint64_t>(k) * 4; };
  item.args.push_back({{first_base, 0}, {gap, 1}, bytes(n * gap)});
  item.args.push_back({{first_base + 1, 0}, {1, 0}, bytes(n)});
  item.args.push_back({{first_base + 2, 0}, {m, 1}, bytes(n * m)});
  return item;
}

}  // namespace

TEST_CASE("cuda printer: random loops give the interpreter's bits") {
  PrintedCases cases;
  const std::uint64_t count = full_scale() ? 4000 : 200;
  for (std::uint64_t i = 0; i < count; i++) cases.add(random_case(i));
  cases.check();
}

TEST_CASE("cuda printer: long float sums and products have the order of kernel IR") {
  Random random(5);
  PrintedCases cases;
  for (const DType t : {float32, float64})
    for (const Reducer reducer : {Reducer::sum, Reducer::prod, Reducer::max})
      for (const std::int64_t n : {0, 1, 31, 33, 1023, 1024, 1025, 2048, 5000})
        cases.add(long_rows(t, reducer, n, random));
  cases.check();
}

TEST_CASE("cuda printer: every op, cut over eight devices, gives the bits of the interpreting kernels") {
  struct Row {
    std::string name;
    std::shared_ptr<const Program> program;
    std::vector<cuda::KernelLaunch> launches;
  };
  std::vector<Row> rows;
  PrintedTexts texts;
  const Mesh mesh = make_mesh({{"x", 2}, {"y", 4}});
  for (const OpCase& op : launch_cases()) {
    Rng rng(std::hash<std::string>()(op.name));
    Arrays given = draw_operands(op, rng);
    const auto f = jit([&op](const Arrays& a) { return op.function(a); });
    for (int repeat = 0; repeat < (full_scale() ? 10 : 1); repeat++) {
      for (Array& a : given) {
        const auto shardings = every_sharding(mesh, a.shape().size());
        a = device_put(a, shardings[rng() % shardings.size()]);
      }
      auto program = compiled_for(program_test::prepare(f, given), cuda::cuda_target()).program;
      auto launches = cuda::launches_of(*program);
      texts.add(launches);
      rows.push_back({op.name, std::move(program), std::move(launches)});
    }
  }
  REQUIRE(rows.size() > (full_scale() ? 300 : 150));
  REQUIRE(texts.count() > 100);
  texts.compile();
  check_printed_programs(rows, texts);
}

TEST_CASE("cuda printer: the items of a loop have one shape") {
  Random random(3);
  Loop loop;
  loop.kernel = std::make_shared<const Kernel>(scaled_rows());
  Memory memory;
  struct Size {
    std::int64_t n, m, gap;
  };
  // Whole tiles, short ones, single rows and columns, empty ones.
  for (const auto& [n, m, gap] : {Size{5, 7, 7}, {5, 3, 3}, {1, 7, 7}, {4, 1, 9}, {0, 7, 7}, {3, 7, 11}}) {
    const auto base = static_cast<std::uint32_t>(memory.size());
    loop.items.push_back(scaled_rows_item(base, n, m, gap, static_cast<std::int64_t>(base) * 5));
    memory.push_back(random_elements(random, float32, std::max<std::int64_t>(n * gap, 1)));
    memory.push_back(random_elements(random, float32, std::max<std::int64_t>(n, 1)));
    memory.push_back(Bytes(static_cast<std::size_t>(std::max<std::int64_t>(n * m, 1)) * 4));
  }
  const std::vector<DType> dtypes(memory.size(), float32);
  check_step(loop, memory, dtypes);

  const std::vector<cuda::KernelLaunch> launches = launches_of_step(loop);
  const cuda::LoopShape& shape = launches.at(0).shape;
  CHECK(shape.outer_axes == 2);
  CHECK(shape.axes == 2);
  CHECK(shape.small);
  // x: rows are somewhere; scale: one number a row; out: somewhere too; then the index of the rows.
  CHECK(shape.moves == std::vector<Move>{Move::any, Move::one, Move::one, Move::none, Move::any, Move::one,
                                         Move::one, Move::none});
  PrintedTexts texts;
  texts.add(launches);
  texts.compile();
  Memory want = memory;
  cpu_test::run({cpu_test::step(loop)}, pointers(want));
  for (const BlockOrder& order : block_orders) {
    Memory got = memory;
    texts.run(launches, pointers(got), order);
    for (std::size_t b = 0; b < memory.size(); b++) {
      CAPTURE(b);
      REQUIRE(same_values(float32, got[b], want[b]));
    }
  }
}

TEST_CASE("cuda printer: runs of 16 bytes, what is left of them, and places where there are none") {
  // out[i][j] = x[i][j] * scale[i] + i over rows of m numbers, which are `gap` apart in x.
  struct Row {
    const char* what;
    std::int64_t n, m, gap;
    std::uint64_t x_at, out_at;  // bytes into their buffers
    bool runs;
  };
  const Row rows[] = {{"whole runs", 3, 8, 8, 0, 0, true},
                      {"a number of them that is no multiple of a run", 5, 8, 12, 0, 0, true},
                      {"16 bytes on", 3, 8, 12, 16, 32, true},
                      {"rows that end within a run", 3, 7, 8, 0, 0, false},
                      {"rows that begin within one", 3, 8, 9, 0, 0, false},
                      {"a misaligned operand", 3, 8, 12, 4, 0, false},
                      {"a misaligned result", 3, 8, 12, 0, 8, false}};
  const auto kernel = std::make_shared<const Kernel>(scaled_rows());
  std::string text = "extern \"C\" { int runs_taken; }\n" + cuda::printed_prelude();
  std::vector<cuda::KernelLaunch> launches;
  for (const Row& r : rows) {
    Loop loop;
    loop.kernel = kernel;
    loop.items = {scaled_rows_item(0, r.n, r.m, r.gap, 0)};
    loop.items[0].args[0].ref.offset = r.x_at;
    loop.items[0].args[2].ref.offset = r.out_at;
    launches.push_back(launches_of_step(loop).at(0));
    std::string printed =
        cuda::print_kernel(*kernel, launches.back().shape, "loop_" + std::to_string(launches.size() - 1));
    const std::string begin = "    done = points";
    REQUIRE(printed.find("read_run<float, 4>") != printed.npos);
    REQUIRE(printed.find(begin) != printed.npos);
    printed.insert(printed.find(begin), "    runs_taken++;\n");
    text += printed;
  }
  const CompiledText compiled(text);
  int& runs_taken = *static_cast<int*>(compiled.symbol("runs_taken"));
  Random random(11);
  for (std::size_t k = 0; k < launches.size(); k++) {
    const Row& r = rows[k];
    CAPTURE(r.what);
    const auto f = reinterpret_cast<cuda::HostKernel>(compiled.symbol("loop_" + std::to_string(k)));
    alignas(16) float x[64], scale[8], out[64];
    for (float& v : x) v = static_cast<float>(pick(random, 100)) / 8;
    for (float& v : scale) v = static_cast<float>(pick(random, 100)) / 8;
    for (const BlockOrder& order : block_orders) {
      std::fill(std::begin(out), std::end(out), -1.f);
      runs_taken = 0;
      run_launches({launches[k]}, {x, scale, out}, order, [&](const cuda::KernelLaunch&) { return f; });
      CHECK((runs_taken > 0) == r.runs);
      std::vector<float> want(64, -1.f);
      for (std::int64_t i = 0; i < r.n; i++)
        for (std::int64_t j = 0; j < r.m; j++)
          want[r.out_at / 4 + static_cast<std::size_t>(i * r.m + j)] =
              x[r.x_at / 4 + static_cast<std::size_t>(i * r.gap + j)] * scale[i] + static_cast<float>(i);
      CHECK(std::equal(want.begin(), want.end(), out));
    }
  }
}

TEST_CASE("cuda printer: the points behind the last whole run are done one by one") {
  KernelBuilder b(1, 0);
  b.begin_stage(false);
  const int x = b.load(b.arg({uint8}));
  b.store(b.arg({uint8, true}), b.binary(Code::add, x, b.constant(uint8, 3)));
  Loop loop;
  loop.kernel = std::make_shared<const Kernel>(b.finish());
  PrintedTexts texts;
  const auto launches_for = [&](std::int64_t n) {
    loop.items = {{0, {n}, {0}, {{{0, 0}, {1}, 0}, {{1, 0}, {1}, 0}}}};
    return launches_of_step(loop);
  };
  const auto some = launches_for(16);
  CHECK(cuda::print_kernel(*loop.kernel, some[0].shape, "loop").find("read_run<std::uint8_t, 16>") !=
        std::string::npos);
  texts.add(some);
  texts.compile();
  for (const std::int64_t n : {15, 16, 17, 31, 160, 161}) {
    const auto launches = launches_for(n);
    alignas(16) std::uint8_t in[192], out[192];
    for (int k = 0; k < 192; k++) in[k] = static_cast<std::uint8_t>(7 * k);
    for (const BlockOrder& order : block_orders) {
      std::fill(std::begin(out), std::end(out), std::uint8_t{0});
      texts.run(launches, {in, out}, order);
      for (std::int64_t k = 0; k < 192; k++)
        CHECK(out[k] == (k < n ? static_cast<std::uint8_t>(in[k] + 3) : 0));
    }
  }
}

TEST_CASE("cuda printer: rows that several stages read give the interpreter's bits") {
  PrintedCases cases;
  std::uint64_t seed = 0;
  for (const RowsOf& rows : rows_of_all_sizes()) cases.add(rows_in_stages(rows, seed++));
  cases.check();
}

TEST_CASE("cuda printer: rows that several stages read come from memory once") {
  const KernelCase c = rows_in_stages({float32, 7, 1000, 1003}, 3);
  const cuda::KernelLaunch l = launches_of_case(c).at(0);
  // What was read is gone then: whoever reads it again gets NaNs.
  std::string text = cuda::print_kernel(*l.loop, l.shape, "rows");
  const std::string begin = "keep_row<float>(team, k0, ", end = ", item.inner_points);\n";
  const std::size_t at = text.find(begin), place = at + begin.size();
  REQUIRE(at != text.npos);
  const std::size_t stop = text.find(end, place);
  REQUIRE(stop != text.npos);
  text.insert(stop + end.size(), "for (std::int64_t j = 0; j < item.inner_points; j++) write(" +
                                     text.substr(place, stop - place) +
                                     " + j * 4, std::numeric_limits<float>::quiet_NaN());\n");
  const CompiledText compiled(cuda::printed_prelude() + text);
  const auto f = reinterpret_cast<cuda::HostKernel>(compiled.symbol("rows"));
  const auto want = interpreted(c);
  const auto got = run_pieces(c, {1}, [&](void* const* bases, std::int64_t, std::int64_t) {
    run_launches({l}, {bases, bases + c.args.size()}, {}, [&](const cuda::KernelLaunch&) { return f; });
  });
  CHECK(same_values(float32, got[2], want[2]));
  CHECK_FALSE(same_values(float32, got[0], want[0]));
  CHECK(text.find("keep_row", stop) == text.npos);  // the row that all share stays where it is
}

TEST_CASE("cuda printer: rows are kept where a block's warps have the shared memory") {
  struct Row {
    DType type;
    std::int64_t length;
    std::uint32_t kept, threads;
  };
  for (const Row& r : {Row{float32, 2, 32, 256},
                       {float32, 1536, 1536, 256},
                       {float32, 1537, 1568, 128},
                       {float32, 2047, 2048, 128},
                       {float32, 2048, 2048, 64},
                       {float32, 4096, 4096, 128},
                       {float32, 6145, 6176, 128},
                       {float32, 12032, 12032, 256},
                       {float32, 12033, 0, 256},
                       {float64, 3072, 3072, 64},
                       {uint8, 48128, 48128, 256},
                       {uint8, 48129, 0, 256}}) {
    const KernelCase c = rows_in_stages({r.type, 3, r.length, r.length}, 1);
    const cuda::KernelLaunch l = launches_of_case(c).at(0);
    CAPTURE(r.length);
    CHECK(l.shape.kept_points == r.kept);
    CHECK(l.printed_threads == r.threads);
    const cuda::KeptRows kept(c.kernel, cuda::HalfCasts(c.kernel), l.shape);
    CHECK(l.printed_threads / 32 / l.shape.row_warps * kept.bytes() <= 48 << 10);
  }
  // Values that are more than a few operations, where there is room for them too.
  const auto values = [](std::int64_t length, int operations) {
    const KernelCase c = rows_in_stages({float32, 3, length, length, false, operations}, 1);
    const cuda::LoopShape shape = launches_of_case(c).at(0).shape;
    const cuda::KeptRows kept(c.kernel, cuda::HalfCasts(c.kernel), shape);
    return std::ranges::count_if(kept.rows(), &cuda::KeptRows::Row::is_value);
  };
  CHECK(values(64, 2) == 0);
  CHECK(values(64, 20) == 1);
  CHECK(values(12032, 20) == 1);  // where the argument was, which is read no more
  CHECK(values(12033, 20) == 0);
  // Very many rows keep all multiprocessors busy with a warp each, where nothing is kept.
  CHECK(launches_of_case(rows_in_stages({float32, 2047, 13000, 13000}, 1)).at(0).shape.row_warps == 8);
  CHECK(launches_of_case(rows_in_stages({float32, 2048, 13000, 13000}, 1)).at(0).shape.row_warps == 1);
  // One row, as all rows have it, and rows that one stage reads.
  CHECK(launches_of_case(rows_in_stages({float32, 1, 64, 64}, 1)).at(0).shape.kept_points == 0);
  KernelBuilder b(1, 1);
  const int x = b.arg({float32}), out = b.arg({float32, true});
  b.begin_stage(true);
  const int sum = b.reduce(Reducer::sum, b.load(x));
  b.begin_stage(false);
  b.store(out, sum);
  KernelCase once;
  once.kernel = b.finish();
  once.extents = {4, 64};
  once.start = {0, 0};
  once.args = {{{64, 1}, 0, 256}, {{1, 0}, 0, 4}};
  CHECK(launches_of_case(once).at(0).shape.kept_points == 0);
}

TEST_CASE("cuda printer: dimensions that all items walk through in one sequence are one axis") {
  KernelBuilder b(2, 0);
  const int x = b.arg({float32}), out = b.arg({float32, true});
  b.begin_stage(false);
  b.store(out, b.load(x));
  Loop loop;
  loop.kernel = std::make_shared<const Kernel>(b.finish());
  const auto add = [&](std::int64_t n, std::int64_t m, std::int64_t gap) {
    loop.items.push_back({0, {n, m}, {0, 0}, {{{0, 0}, {gap, 1}, 0}, {{1, 0}, {gap, 1}, 0}}});
  };
  const auto axes = [&] { return cuda::LoopAxes(loop, cuda::LoopOperands(*loop.kernel)).shape().axes; };
  add(4, 6, 6);
  CHECK(axes() == 1);
  add(1, 5, 77);  // a row lies as any
  CHECK(axes() == 1);
  add(0, 5, 77);
  CHECK(axes() == 1);
  add(2, 5, 77);
  CHECK(axes() == 2);
  loop.items = {};
  add(1 << 16, (1 << 15) - (1 << 9), 1 << 20);
  const auto small = [&] { return cuda::LoopAxes(loop, cuda::LoopOperands(*loop.kernel)).shape().small; };
  CHECK(small());
  add(1 << 16, (1 << 15) - (1 << 9) + 1, 1 << 20);
  CHECK(!small());
}

TEST_CASE("cuda printer: the items of a launch have together as many blocks as one alone") {
  KernelBuilder b(1, 0);
  const int x = b.arg({float32}), out = b.arg({float32, true});
  b.begin_stage(false);
  b.store(out, b.load(x));
  Loop loop;
  loop.kernel = std::make_shared<const Kernel>(b.finish());
  const auto blocks = [&](std::size_t items, std::int64_t points) {
    loop.items.assign(items, {0, {points}, {0}, {{{0, 0}, {1}, 0}, {{1, 0}, {1}, 0}}});
    return launches_of_step(loop).at(0).printed_blocks;
  };
  CHECK(blocks(1, 1 << 26) == 4096);  // of 256 threads
  CHECK(blocks(8, 1 << 26) == 512);
  CHECK(blocks(3, 1 << 26) == 1366);
  CHECK(blocks(5000, 1 << 26) == 1);
  CHECK(blocks(8, 4096) == 4);  // no more than they need
}

TEST_CASE("cuda printer: a kernel as text") {
  KernelBuilder b(1, 1);
  const int x = b.arg({float32}), out = b.arg({float32, true});
  b.begin_stage(true);
  const int v = b.load(x);
  const int half = b.constant(float32, 0.5);
  const int sum = b.reduce(Reducer::sum, b.binary(Code::mul, v, half));
  b.begin_stage(false);
  b.store(out, sum);
  const Kernel k = b.finish();
  cuda::LoopShape shape{1, 2, true, {Move::any, Move::one, Move::one, Move::none}, false};
  CHECK(cuda::print_kernel(k, shape, "half_sum") == R"(namespace shardarray::device {
template <class Item>
SHARDARRAY_DEVICE void half_sum_text(const Grid& g, const std::byte* table, const Bases& bases) {
  const Item item(g, table, bases);
  using Index = std::uint32_t;
  std::byte* const p0 = item.place(0);
  const std::int64_t s0_0 = item.stride(0);
  std::byte* const p1 = item.place(1);
  using Number = std::int32_t;
  SHARDARRAY_POINTS
  for (RowTeam team(g, item.outer_points); team.works(); team.next()) {
    [[maybe_unused]] const std::int64_t point = team.point();
    [[maybe_unused]] const std::int64_t x0 = point;
    LaneReduction<float, Sum, RowTeam> r3(item, scalar::from_bits<float>(0x0u));
    for (std::int64_t begin = 0, stop; begin < item.inner_points; begin = stop) {
      stop = item.inner_points - begin > item.block ? begin + item.block : item.inner_points;
      r3.open_block();
      SHARDARRAY_TEAM_LANES(team, lane) {
        each_inner_point<8, Number>(begin + lane, stop, warp_lanes, [&](const Number j) {
          [[maybe_unused]] const std::int64_t x1 = j;
          const float v0 = read<float>(p0 + (x0 * s0_0 + x1 * 4));
          const float v1 = scalar::from_bits<float>(0x3f000000u);
          const float v2 = scalar::mul(v0, v1);
          r3.take(lane, v2);
        });
      }
      r3.close_block(team);
    }
    const float v3 = r3.result();
    team.sync();
    write_once(team, p1 + (x0 * 4), v3);
    team.sync();
  }
}
SHARDARRAY_PRINTED(half_sum, half_sum_text, 256, 2, 32)
}  // namespace shardarray::device

)");
}

}  // namespace cuda_printer_test
