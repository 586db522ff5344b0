// Kernel IR: rules, builder, folding, and the interpreter against the printed C++.
#include <doctest/doctest.h>

#include <bit>
#include <limits>
#include <memory>

#include "kernel_check.h"
#include "kernel_cpp.h"
#include "kernel_random.h"
#include "messages.h"
#include "runtime/evaluate_instruction.h"
#include "runtime/kernel_builder.h"
#include "scale.h"
#include "shardarray/error.h"

namespace kernel_test {

using namespace shardarray;
using namespace shardarray::test;
using testing::contains;

namespace {

/// The message of verify for a kernel of one stage.
std::string message(Kernel k) {
  try {
    verify(k);
  } catch (const InternalError& e) { return e.text(); }
  return "";
}
Kernel kernel_of(std::vector<Instr> code, bool inner = false, std::vector<KernelArg> args = {}) {
  Kernel k;
  k.outer = 1;
  k.inner = 1;
  k.args = std::move(args);
  k.stages = {{inner, static_cast<std::int32_t>(code.size())}};
  k.code = std::move(code);
  return k;
}

template <class T> std::uint64_t bits(T x) {
  std::uint64_t b = 0;
  std::memcpy(&b, &x, sizeof x);
  return b;
}
/// code(a, b) on one type, evaluated.
template <class T> T apply(Code code, T a, T b = T{}) {
  const Instr in{.code = code, .type = dtype_of<T>(), .a = 0, .b = 1};
  const std::uint64_t r = evaluate_instruction(in, dtype_of<T>(), bits(a), bits(b), 0);
  T out;
  std::memcpy(&out, &r, sizeof out);
  return out;
}
template <class To, class From> To convert(From x) {
  const Instr in{.code = Code::cast, .type = dtype_of<To>(), .a = 0};
  const std::uint64_t r = evaluate_instruction(in, dtype_of<From>(), bits(x), 0, 0);
  To out;
  std::memcpy(&out, &r, sizeof out);
  return out;
}

}  // namespace

TEST_CASE("kernel: verify names the instruction and the rule") {
  const Instr one{.code = Code::constant, .type = float32, .imm = 0x3f800000};
  const Instr i32{.code = Code::constant, .type = int32, .imm = 1};
  const Instr yes{.code = Code::constant, .type = bool_, .imm = 1};
  const auto with = [&](Instr in, bool inner = false, std::vector<KernelArg> args = {}) {
    return message(kernel_of({one, i32, yes, in}, inner, std::move(args)));
  };
  CHECK(message(kernel_of({one, i32, yes})) == "");
  CHECK(with({.code = Code::mul, .type = float32, .a = 0, .b = 1}) ==
        "verify: instruction `%3 = mul f32 %0 %1` breaks a rule of kernel IR. Operands have the result's "
        "type. Mend the "
        "pass that emitted it.");
  const std::pair<Instr, const char*> broken[] = {
      {{.code = Code::neg, .type = float32, .a = 3}, "Operands are results of instructions before it"},
      {{.code = Code::neg, .type = float16, .a = 0},
       "Kernels compute with bool, integers, float32 and float64"},
      {{.code = Code::constant, .type = int8, .imm = 256}, "Bits stand in the low bytes"},
      {{.code = Code::constant, .type = bool_, .imm = 2}, "Bits stand in the low bytes"},
      {{.code = Code::index, .type = int32, .imm = 0}, "An index is int64"},
      {{.code = Code::index, .type = int64, .imm = 2}, "An index names a dimension of the domain"},
      {{.code = Code::index, .type = int64, .imm = 1}, "Outer stages have no inner index"},
      {{.code = Code::load, .type = float32, .imm = 0}, "The argument exists"},
      {{.code = Code::reduce, .type = float32, .a = 0, .imm = 1}, "Only inner stages reduce"},
      {{.code = Code::bitcast, .type = int64, .a = 0}, "A bitcast keeps the width"},
      {{.code = Code::select, .type = float32, .a = 0, .b = 0, .c = 0}, "The condition of select is bool"},
      {{.code = Code::select, .type = float32, .a = 2, .b = 0, .c = 1},
       "Both values of select have the result's type"},
      {{.code = Code::call, .type = float32, .a = 0, .imm = 0}, "Calls compute in float64"},
      {{.code = Code::call, .type = float64, .a = 0, .imm = 99}, "Called functions are those of `Function`"},
      {{.code = Code::eq, .type = float32, .a = 0, .b = 0}, "A comparison gives bool"},
      {{.code = Code::lt, .type = bool_, .a = 0, .b = 1}, "Compared operands have one type"},
      {{.code = Code::fma, .type = int32, .a = 1, .b = 1, .c = 1}, "It computes with floats only"},
      {{.code = Code::xor_, .type = float32, .a = 0, .b = 0}, "It computes with bool and integers"},
      {{.code = Code::shl, .type = bool_, .a = 2, .b = 2}, "It computes with integers only"},
      {{.code = Code::add, .type = bool_, .a = 2, .b = 2}, "It computes with numbers, not bool"},
  };
  for (const auto& row : broken) {
    CAPTURE(std::string(row.second));
    CHECK(contains(with(row.first), row.second));
  }
  const Instr unknown{.code = static_cast<Code>(100), .type = float32};
  CHECK(contains(message(kernel_of({unknown})), "Codes are those of `Code`"));
}

TEST_CASE("kernel: verify checks arguments, reductions and stages") {
  const Instr one{.code = Code::constant, .type = float32, .imm = 0x3f800000};
  const Instr row{.code = Code::constant, .type = int64, .imm = 3};
  const auto with = [&](std::vector<Instr> more, KernelArg arg, bool inner = false) {
    more.insert(more.begin(), {one, row});
    return message(kernel_of(more, inner, {arg}));
  };
  const Instr load{.code = Code::load, .type = float32},
      load_at{.code = Code::load_at, .type = float32, .a = 1};
  const Instr store{.code = Code::store, .type = float32, .a = 0};
  CHECK(with({load}, {float32}) == "");
  CHECK(contains(with({load}, {int32}), "The argument has the value's type"));
  CHECK(contains(with({load}, {float32, true}), "Outputs are stored, other arguments loaded"));
  CHECK(contains(with({store}, {float32}), "Outputs are stored, other arguments loaded"));
  CHECK(contains(with({store, store}, {float32, true}), "An output is stored once"));
  CHECK(contains(with({load}, {float32, false, true}), "load_at reads indirect arguments, load the others"));
  CHECK(contains(with({{.code = Code::load_at, .type = float32, .a = 0}}, {float32, false, true}),
                 "The row of load_at is int64"));
  CHECK(with({load_at}, {float32, false, true}) == "");
  const auto reduce = [](Reducer r, DType t, std::int32_t a) {
    return Instr{.code = Code::reduce, .type = t, .a = a, .imm = static_cast<std::uint64_t>(r)};
  };
  CHECK(with({reduce(Reducer::sum, float32, 0)}, {float32}, true) == "");
  CHECK(contains(with({reduce(Reducer::none, float32, 0)}, {float32}, true),
                 "The reducer is one of sum .. all"));
  CHECK(contains(with({reduce(Reducer::sum, int64, 0)}, {float32}, true), "A reduced value keeps its type"));
  CHECK(contains(with({reduce(Reducer::any, float32, 0)}, {float32}, true),
                 "any and all take bool, the other reducers numbers"));
  const Instr neg{.code = Code::neg, .type = float32, .a = 2};
  CHECK(contains(with({reduce(Reducer::sum, float32, 0), neg}, {float32}, true),
                 "A reduced value exists after its stage only"));

  Kernel k = kernel_of({one, {.code = Code::neg, .type = float32, .a = 0}});
  k.stages = {{true, 1}, {false, 2}};
  CHECK(contains(message(k), "Only reduced values leave an inner stage"));
  k.stages = {{true, 1}};
  CHECK(
      message(k) ==
      "verify: the stages do not cut the 2 instructions of the kernel in order. Ends ascend and the last one "
      "is the number of instructions. Build kernels with KernelBuilder.");
  k.stages = {{true, 3}};
  CHECK_THROWS_AS(verify(k), InternalError);
  k.outer = -1;
  CHECK(
      contains(message(k), "verify: a kernel has -1 outer and 1 inner dimensions. Neither may be negative."));
}

TEST_CASE("kernel: what may be overwritten") {
  KernelBuilder b(1, 1);
  const int x = b.arg({float32}), rows = b.arg({float32, false, true}), sum = b.arg({float32, true}),
            y = b.arg({float32, true});
  b.begin_stage(true);
  const int s = b.reduce(Reducer::sum, b.binary(Code::add, b.load(x), b.load_at(rows, b.index(0))));
  b.begin_stage(false);
  b.store(sum, s);
  b.begin_stage(true);
  b.store(y, b.binary(Code::div, b.load(x), s));
  const Kernel k = b.finish();
  CHECK(may_overwrite(k, x, y));
  CHECK(!may_overwrite(k, x, sum));   // x is read again afterwards
  CHECK(!may_overwrite(k, rows, y));  // any row may still be wanted
}

TEST_CASE("kernel: builder numbers, folds and drops") {
  KernelBuilder b(1, 1);
  const int x = b.arg({float32}), out = b.arg({float32, true});
  b.begin_stage(false);
  const int loaded = b.load(x), two = b.constant(float32, 2), scale = b.binary(Code::mul, loaded, two);
  b.begin_stage(true);
  const int v = b.load(x);
  CHECK(v == b.load(x));
  CHECK(v != scale);
  CHECK(scale == b.binary(Code::mul, loaded, two));  // an outer value, visible here
  const int r = b.reduce(Reducer::sum, v);
  CHECK(r == b.reduce(Reducer::sum, v));
  b.binary(Code::sub, v, v);  // dead
  b.begin_stage(true);
  b.begin_stage(false);
  CHECK(b.load(x) == loaded);
  const int three = b.binary(Code::add, b.constant(float32, 1), b.constant(float32, 2));
  CHECK(three == b.constant(float32, 3));
  CHECK(b.cast(three, float32) == three);
  CHECK(b.type(b.binary(Code::lt, r, three)) == bool_);
  const int sum = b.binary(Code::add, r, scale);
  b.store(out, b.binary(Code::mul, sum, three));
  CHECK(to_string(b.finish()) ==
        "kernel outer=1 inner=1\n"
        "arg0 f32\n"
        "arg1 f32 output\n"
        "outer:\n"
        "  %0 = load f32 arg0\n"
        "  %1 = constant f32 2\n"
        "  %2 = mul f32 %0 %1\n"
        "inner:\n"
        "  %3 = load f32 arg0\n"
        "  %4 = reduce f32 sum %3\n"
        "outer:\n"
        "  %5 = constant f32 3\n"
        "  %6 = add f32 %4 %2\n"
        "  %7 = mul f32 %6 %5\n"
        "  store arg1 %7\n");

  KernelBuilder wrong(0, 0);
  CHECK_THROWS_WITH(wrong.constant(float32, 1),
                    "KernelBuilder: `constant` stands in no stage. Instructions belong to the stage "
                    "opened last. Call begin_stage first.");
  wrong.begin_stage(true);
  const int inner = wrong.load(wrong.arg({float32}));
  wrong.begin_stage(false);
  CHECK_THROWS_WITH(wrong.unary(Code::neg, inner),
                    "KernelBuilder: `neg` uses %0, which is not visible in its stage. Only outer "
                    "and reduced values leave their stage. Recompute it here.");
}

TEST_CASE("kernel: texts of all kinds of instructions") {
  KernelBuilder b(2, 0);
  const int table = b.arg({int8, false, true}), out = b.arg({int8, true}), wide = b.arg({float64, true});
  b.begin_stage(false);
  const int index = b.index(1), mask = b.constant(int64, -2), row = b.binary(Code::and_, index, mask);
  const int same = b.binary(Code::eq, row, row), read = b.load_at(table, row), cut = b.cast(row, int8);
  b.store(out, b.select(same, read, cut));
  const int base = b.cast(row, float64), exponent = b.constant(float64, 0.5);
  b.store(wide, b.call(Function::pow, base, exponent));
  CHECK(to_string(b.finish()) ==
        "kernel outer=2 inner=0\narg0 i8 indirect\narg1 i8 output\narg2 f64 output\nouter:\n"
        "  %0 = index i64 dim1\n  %1 = constant i64 -2\n  %2 = and i64 %0 %1\n  %3 = eq bool %2 %2\n"
        "  %4 = load_at i8 arg0 %2\n  %5 = cast i8 %2\n  %6 = select i8 %3 %4 %5\n  store arg1 %6\n"
        "  %8 = cast f64 %2\n  %9 = constant f64 0.5\n  %10 = call f64 pow %8 %9\n  store arg2 %10\n");
}

TEST_CASE("kernel: arithmetic at the edges") {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  constexpr std::int32_t lowest = std::numeric_limits<std::int32_t>::min(),
                         highest = std::numeric_limits<std::int32_t>::max();
  CHECK(apply(Code::div, 7, 0) == -1);
  CHECK(apply(Code::rem, 7, 0) == 7);
  CHECK(apply(Code::div, 7u, 0u) == 0xffffffffu);
  CHECK(apply(Code::rem, 7u, 0u) == 7u);
  CHECK(apply(Code::div, lowest, -1) == lowest);
  CHECK(apply(Code::rem, lowest, -1) == 0);
  CHECK(apply(Code::div, -7, 2) == -3);
  CHECK(apply(Code::rem, -7, 2) == -1);
  CHECK(apply(Code::rem, -7.5f, 2.f) == -1.5f);
  CHECK(apply(Code::add, highest, 1) == lowest);
  CHECK(apply(Code::abs, lowest) == lowest);
  CHECK(apply<std::int8_t>(Code::mul, 100, 3) == 44);
  CHECK(apply<std::uint16_t>(Code::mul, 0xffff, 0xffff) == 1);
  CHECK(apply(Code::shl, 1, 31) == lowest);
  CHECK(apply(Code::shl, 1, 32) == 0);
  CHECK(apply(Code::shl, 1, -1) == 0);
  CHECK(apply(Code::shr, -8, 1) == -4);
  CHECK(apply(Code::shr, -8, 99) == -1);
  CHECK(apply(Code::shr, -8, -1) == -1);
  CHECK(apply(Code::shr, 8u, 32u) == 0u);
  CHECK(apply<std::uint8_t>(Code::shl, 255, 1) == 254);
  CHECK(bits(apply(Code::max, -0.f, 0.f)) == 0);
  CHECK(bits(apply(Code::max, 0.f, -0.f)) == 0);
  CHECK(bits(apply(Code::min, -0.f, 0.f)) == 0x80000000u);
  CHECK(bits(apply(Code::min, 0.f, -0.f)) == 0x80000000u);
  CHECK(bits(apply(Code::min, -nan, 1.f)) == 0x7fc00000u);
  CHECK(bits(apply(Code::max, 1.f, std::bit_cast<float>(0xff800001u))) == 0x7fc00000u);
  CHECK(apply(Code::round, 2.5f) == 2);
  CHECK(apply(Code::round, -3.5) == -4);
  CHECK(apply(Code::floor, -1.5f) == -2);
  CHECK(apply(Code::ceil, 1.25) == 2);
  CHECK(apply(Code::trunc, -1.75f) == -1);
  CHECK(apply(Code::not_, true) == false);
  CHECK(apply(Code::not_, 5) == -6);

  CHECK(convert<std::int32_t>(nan) == 0);
  CHECK(convert<std::int32_t>(inf) == highest);
  CHECK(convert<std::int32_t>(-3e9f) == lowest);
  CHECK(convert<std::int32_t>(-1.9f) == -1);
  CHECK(convert<std::uint8_t>(-1.f) == 0);
  CHECK(convert<std::uint8_t>(255.9f) == 255);
  CHECK(convert<std::uint8_t>(1e9f) == 255);
  CHECK(convert<std::int8_t>(-128.5) == -128);
  CHECK(convert<std::uint64_t>(1.8446744073709552e19) == std::numeric_limits<std::uint64_t>::max());
  CHECK(convert<std::int64_t>(-9.3e18f) == std::numeric_limits<std::int64_t>::min());
  CHECK(convert<bool>(nan));
  CHECK(!convert<bool>(-0.f));
  CHECK(convert<std::int8_t>(300) == 44);
  CHECK(convert<float>(16777217) == 16777216.f);
  CHECK(convert<float>(true) == 1.f);
  CHECK(convert<float>(0xffffffffffffffffull) == 18446744073709551616.f);

  CHECK(identity_bits(Reducer::max, int8) == 0x80);
  CHECK(identity_bits(Reducer::min, uint32) == 0xffffffffu);
  CHECK(identity_bits(Reducer::max, float32) == bits(-inf));
  CHECK(identity_bits(Reducer::prod, float64) == bits(1.0));
  const Instr odd{.code = Code::shl, .type = float32, .a = 0, .b = 1};
  CHECK_THROWS_WITH(evaluate_instruction(odd, float32, 0, 0, 0),
                    "evaluate: shl is not defined for this type. The rules stand in kernel.h. "
                    "Verify the kernel first.");
}

TEST_CASE("interpreter: every code of every type on both loop tables equals the folding") {
  std::mt19937_64 random(7);
  for (const Loops* loops : {&baseline_loops(), v3_loops()}) {
    if (!loops) continue;
    for (int code = static_cast<int>(Code::cast); code < static_cast<int>(Code::select); code++) {
      if (code == static_cast<int>(Code::bitcast)) continue;
      for (const DType from : types) {
        for (const DType to : types) {
          const bool cast = code == static_cast<int>(Code::cast);
          if (!cast && to != from) continue;
          const RowFunction f = cast ? loops->cast[static_cast<int>(from)][static_cast<int>(to)]
                                     : loops->op[code][static_cast<int>(from)];
          if (!f) continue;
          constexpr int n = 77;
          const std::size_t size = itemsize(from);
          const bool comparison = code >= static_cast<int>(Code::eq) && code <= static_cast<int>(Code::ge);
          const DType result = comparison ? bool_ : to;
          std::vector<std::byte> x[3], got(n * itemsize(result)), want(n * itemsize(result));
          std::uint64_t v[3][n] = {};
          for (int o = 0; o < 3; o++) {
            x[o].resize(n * size);
            for (int i = 0; i < n; i++) {
              // Random bits, small numbers and special floats.
              const std::uint64_t r = random(), kind = r >> 60;
              v[o][i] = kind < 6 ? random()
                                 : bits_of(from, kind < 14    ? static_cast<double>(r % 7) - 3
                                                 : kind == 14 ? INFINITY
                                                              : NAN);
              if (from == bool_) v[o][i] &= 1;
              if (size < 8) v[o][i] &= (1ull << 8 * size) - 1;
              std::memcpy(x[o].data() + i * size, &v[o][i], size);
            }
          }
          f(got.data(), x[0].data(), x[1].data(), x[2].data(), n);
          for (int i = 0; i < n; i++) {
            const Instr in{.code = static_cast<Code>(code), .type = result};
            const std::uint64_t r = evaluate_instruction(in, from, v[0][i], v[1][i], v[2][i]);
            std::memcpy(want.data() + i * itemsize(result), &r, itemsize(result));
          }
          CAPTURE(name(static_cast<Code>(code)));
          CAPTURE(name(from));
          CAPTURE(name(to));
          CHECK(same_values(result, got, want));
        }
      }
    }
  }
}

TEST_CASE("interpreter: random kernels equal the printed C++ in every mode, table and cut") {
  const std::uint64_t count = testing::full_scale() ? 2000 : 100;
  std::string text = cpp_prelude();
  std::vector<KernelCase> cases;
  for (std::uint64_t i = 0; i < count; i++) {
    cases.push_back(random_case(i));
    text += to_cpp(cases.back().kernel, "k" + std::to_string(i));
  }
  const CompiledText printed(text);
  for (std::uint64_t i = 0; i < count; i++) {
    const auto f = reinterpret_cast<PrintedKernel>(printed.symbol("k" + std::to_string(i)));
    REQUIRE((f != nullptr));
    CAPTURE(i);
    const std::string shown = to_string(cases[i].kernel) + "extents " + to_string(cases[i].extents);
    CAPTURE(shown);
    check_interpreter(cases[i], run_printed(cases[i], f));
  }
}

TEST_CASE("interpreter: float sums run in 32 lanes, whatever the mode") {
  for (const std::int64_t n : {0, 1, 31, 32, 33, 257, 1000}) {
    KernelCase c;
    KernelBuilder b(1, 1);
    const int x = b.arg({float32}), out = b.arg({float32, true});
    b.begin_stage(true);
    const int sum = b.reduce(Reducer::sum, b.load(x));
    b.begin_stage(false);
    b.store(out, sum);
    c.kernel = b.finish();
    c.extents = {3, n};
    c.start = {0, 0};
    c.args = {{{n, 1}, 0, 3 * n}, {{1, 0}, 0, 3}};
    std::vector<float> values, want;
    for (std::int64_t i = 0; i < 3 * n; i++) values.push_back(1 / static_cast<float>(i + 1));
    for (std::int64_t row = 0; row < 3; row++) {
      float lane[32] = {};
      for (std::int64_t j = 0; j < n; j++) lane[j % 32] += values[row * n + j];
      for (const int w : {16, 8, 4, 2, 1}) {
        for (int i = 0; i < w; i++) lane[i] += lane[i + w];
      }
      want.push_back(lane[0]);
    }
    std::vector<std::byte> bytes(values.size() * 4), expected(12);
    if (n > 0) std::memcpy(bytes.data(), values.data(), bytes.size());
    std::memcpy(expected.data(), want.data(), 12);
    c.inputs = {bytes, std::vector<std::byte>(12)};
    CAPTURE(n);
    check_interpreter(c, {bytes, expected});
  }
}

TEST_CASE("interpreter: refuses items that do not fit their kernel") {
  KernelBuilder b(1, 0);
  const int x = b.arg({float32}), y = b.arg({float32, true});
  b.begin_stage(false);
  b.store(y, b.unary(Code::neg, b.load(x)));
  const auto k = std::make_shared<Kernel>(b.finish());
  Loop::Item item;
  item.extents = {8};
  item.start = {0};
  item.args.resize(2);
  item.args[0].strides = item.args[1].strides = {1};
  item.args[0].bytes = item.args[1].bytes = 32;
  item.args[1].ref.base = 1;
  CHECK_NOTHROW(LoopPlan(k, item));

  item.args[1].ref = {0, 16};
  CHECK_THROWS_WITH(
      LoopPlan(k, item),
      "LoopPlan: output 1 overlaps argument 0. An output may take over an input's memory only with the same "
      "address, type and strides, and when it is written after every read. Give the output memory of its "
      "own.");
  item.args[1].ref = {0, 32};
  CHECK_NOTHROW(LoopPlan(k, item));
  item.args[1].ref = {0, 0};
  CHECK_NOTHROW(LoopPlan(k, item));
  item.args[1].strides = {2};
  CHECK_THROWS_AS(LoopPlan(k, item), InternalError);

  item.extents = {8, 2};
  CHECK_THROWS_WITH(LoopPlan(k, item),
                    "LoopPlan: an item with 2 arguments over [8,2] does not fit its kernel of 2 arguments "
                    "and rank 1. Extents, "
                    "starts and strides have one entry per dimension. Mend the pass that made the item.");
  Kernel deep = *k;
  deep.outer = 33;
  CHECK_THROWS_WITH(
      LoopPlan(std::make_shared<Kernel>(deep), item),
      "LoopPlan: a kernel of rank 33. The interpreter takes at most 32 dimensions. Merge some.");
}

}  // namespace kernel_test
