// What the points of a run share in printed kernels: found out right, used, and only where an index begins at a multiple of the run.
#include <doctest/doctest.h>

#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include "cuda/run_values.h"
#include "cuda_launches.h"
#include "cuda_printed.h"
#include "cuda_programs.h"
#include "kernel_check.h"
#include "runtime/kernel_builder.h"

namespace cuda_run_values_test {

using namespace shardarray;
using namespace shardarray::test;

namespace {

/// out[i][j] = f(index i, index j) for n x m elements of a dtype, whose indices begin anywhere.
struct OfIndices {
  DType type;
  std::int64_t n, m, first_i, first_j;
};
template <class F> KernelCase of_indices(const OfIndices& o, const F& f) {
  KernelCase c;
  KernelBuilder b(2, 0);
  b.begin_stage(false);
  const int v = f(b);
  b.store(b.arg({o.type, true}), b.cast(v, o.type));
  c.kernel = b.finish();
  c.extents = {o.n, o.m};
  c.start = {o.first_i, o.first_j};
  c.args = {{{o.m, 1}, 0, o.n * o.m}};
  c.inputs = {Bytes(static_cast<std::size_t>(o.n * o.m) * itemsize(o.type))};
  return c;
}

/// Integer arithmetic of the two indices and of constants, in any of the integer types.
int random_integers(KernelBuilder& b, Random& random) {
  constexpr DType integers[] = {int8, int16, int32, int64, uint8, uint16, uint32, uint64};
  constexpr std::int64_t numbers[] = {0, 1, 2, 3, 4, 5, 7, 8, 10, 12, 16, 31, 64, 0xffff, -1, -4};
  std::vector<int> values = {b.index(0), b.index(1), b.index(1)};
  const int length = 3 + static_cast<int>(pick(random, 8));
  for (int k = 0; k < length; k++) {
    int x = values[values.size() - 1 - static_cast<std::size_t>(pick(random, 3))];
    if (pick(random, 2) == 0) x = b.cast(x, integers[pick(random, 8)]);
    const DType t = b.type(x);
    const int number = b.constant(t, static_cast<double>(numbers[pick(random, 16)]));
    const int other =
        pick(random, 4) == 0
            ? b.cast(values[static_cast<std::size_t>(pick(random, static_cast<std::int64_t>(values.size())))],
                     t)
            : number;
    constexpr Code codes[] = {Code::add,  Code::mul, Code::and_, Code::shr, Code::shr,
                              Code::and_, Code::shl, Code::sub,  Code::or_, Code::rem};
    x = b.binary(codes[pick(random, 10)], x, other);
    if (pick(random, 6) == 0) x = b.select(b.binary(Code::ne, x, b.constant(t, 0)), x, number);
    values.push_back(x);
  }
  return values.back();
}

bool shares(const KernelCase& c, const cuda::LoopShape& shape) {
  const cuda::HalfCasts halves(c.kernel);
  const cuda::LoopOperands operands(c.kernel);
  const std::uint32_t run = cuda::run_length(c.kernel, shape);
  cuda::LoopShape anywhere = shape;  // its indices begin
  anywhere.index_unit = 1;
  const cuda::RunValues values(c.kernel, shape, operands, halves, run),
      others(c.kernel, anywhere, operands, halves, run);
  for (std::size_t v = 0; v < c.kernel.code.size(); v++)
    if (halves.is_needed(v) && values.group(v) > others.group(v)) return true;
  return false;
}

/// Of 32 by 32 bits.
int products(const std::string& text) {
  static const std::regex product("const std::uint64_t v[0-9_]+ = scalar::mul");
  return static_cast<int>(std::distance(std::sregex_iterator(text.begin(), text.end(), product), {}));
}

}  // namespace

TEST_CASE("cuda run values: integers of indices have the interpreter's bits, wherever the indices begin") {
  struct Row {
    KernelCase c;
    std::vector<cuda::KernelLaunch> launches;
  };
  std::vector<Row> rows;
  PrintedTexts texts;
  Random random(17);
  int shared = 0;
  constexpr DType results[] = {uint8, int16, uint32, int32, int64, float32, float64};
  for (int k = 0; k < 600; k++) {
    constexpr std::int64_t firsts[] = {0, 16, 4, 3, -8, -3, 1 << 20, 65528};
    const OfIndices o{results[pick(random, 7)], 1 + pick(random, 3), 16 + 4 * pick(random, 8),
                      pick(random, 3), firsts[pick(random, 8)]};
    Row r;
    r.c = of_indices(o, [&](KernelBuilder& b) { return random_integers(b, random); });
    r.launches = launches_of_case(r.c);
    if (r.c.kernel.code.size() < 4) continue;
    shared += shares(r.c, r.launches.at(0).shape);
    texts.add(r.launches);
    rows.push_back(std::move(r));
  }
  CHECK(shared > 60);
  CHECK(rows.size() > 300);
  texts.compile();
  for (const Row& r : rows) {
    const std::string shown = to_string(r.c.kernel) + to_string(r.c.start) + to_string(r.c.extents);
    CAPTURE(shown);
    check_blocks(r.c, interpreted(r.c), [&](const std::vector<void*>& bases, const BlockOrder& order) {
      texts.run(r.launches, bases, order);
    });
  }
}

TEST_CASE(
    "cuda run values: what runs share depends on where indices begin, whether there are runs does not") {
  // Elements of groups of four.
  const auto quarter = [](KernelBuilder& b) { return b.binary(Code::shr, b.index(1), b.constant(int64, 2)); };
  const auto plain = [](KernelBuilder& b) { return b.index(1); };
  for (const bool quarters : {true, false})
    for (const std::int64_t first : {0, 8, -4, 2, 3}) {
      CAPTURE(quarters);
      CAPTURE(first);
      const OfIndices o{float32, 3, 24, 5, first};
      const KernelCase c = quarters ? of_indices(o, quarter) : of_indices(o, plain);
      const auto launches = launches_of_case(c);
      REQUIRE(shares(c, launches.at(0).shape) == (quarters && first % 4 == 0));
      std::string printed = cuda::print_kernel(c.kernel, launches[0].shape, "loop");
      const std::string begin = "    done = points";
      REQUIRE(printed.find(begin) != printed.npos);
      printed.insert(printed.find(begin), "    runs_taken++;\n");
      const CompiledText compiled("extern \"C\" { int runs_taken; }\n" + cuda::printed_prelude() + printed);
      const auto f = reinterpret_cast<cuda::HostKernel>(compiled.symbol("loop"));
      alignas(16) float out[72] = {};
      run_launches(launches, {out}, {}, [&](const cuda::KernelLaunch&) { return f; });
      CHECK(*static_cast<int*>(compiled.symbol("runs_taken")) > 0);
      for (std::int64_t k = 0; k < 72; k++) {
        const std::int64_t j = first + k % 24;
        CHECK(out[k] == static_cast<float>(quarters ? j >> 2 : j));
      }
    }
}

TEST_CASE("cuda run values: draws of philox keys have the CPU's bits, a block of words for four elements") {
  struct Row {
    std::string name;
    std::shared_ptr<const Program> program;
    std::vector<cuda::KernelLaunch> launches;
  };
  std::vector<Row> rows;
  PrintedTexts texts;
  const random::philox on(true);
  const Array key = random::key(5);
  const auto add = [&](const std::string& name, const auto& draw) {
    const auto f = jit([draw](const Array& k) { return draw(k); });
    auto program = compiled_for(program_test::prepare(f, key), cuda::cuda_target()).program;
    auto launches = cuda::launches_of(*program);
    texts.add(launches);
    rows.push_back({name, std::move(program), std::move(launches)});
  };
  const Mesh mesh = make_mesh({{"x", 2}, {"y", 4}});
  for (const Shape& shape : {Shape{64}, Shape{67}, Shape{8, 24}, Shape{8, 16, 12}, Shape{6, 10}}) {
    const std::string of = to_string(shape);
    for (const DType t : {uint8, uint16, uint32, uint64})
      add(std::string("bits ") + short_name(t) + of,
          [=](const Array& k) { return random::bits(k, shape, t); });
    for (const DType t : {float32, bfloat16, float64})
      add(std::string("uniform ") + short_name(t) + of,
          [=](const Array& k) { return random::uniform(k, shape, t); });
    add("normal" + of, [=](const Array& k) { return random::normal(k, shape); });
  }
  for (const P& cut : {P("x"), P(nullptr, "y"), P("y", "x"), P(axes("x", "y"))})
    add("cut", [=](const Array& k) {
      return with_sharding_constraint(random::uniform(k, {16, 24}), NamedSharding(mesh, cut));
    });
  add("a part", [](const Array& k) { return random::uniform(k, {64})[slice(3, 59)]; });
  texts.compile();
  check_printed_programs(rows, texts);
  // Ten rounds with two products each, in the run and in what is left of it.
  for (const Row& row : rows) {
    if (row.name.find("u32") == row.name.npos && row.name.find("f32") == row.name.npos) continue;
    const cuda::KernelLaunch& l = row.launches.at(0);
    const bool pairs = row.name.find("10]") != row.name.npos;  // rows that are no multiple of four
    CHECK_MESSAGE(cuda::run_length(*l.loop, l.shape) == (pairs ? 2 : 4), row.name);
    CHECK_MESSAGE(products(cuda::print_kernel(*l.loop, l.shape, "loop")) == 2 * 20, row.name);
  }
}

}  // namespace cuda_run_values_test
