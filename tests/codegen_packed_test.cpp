// Loops whose last dimensions have few points, as of [n, 3]: generated code runs vectors across them.
#include <doctest/doctest.h>

#include <bit>
#include <cstring>

#include "kernel_check.h"
#include "runtime/kernel_builder.h"
#include "scale.h"

namespace codegen_packed_test {

using namespace shardarray;
using namespace shardarray::test;

namespace {

/// How an operand, or the result, lies in memory.
enum class Lies { in_order, of_last, of_first, of_one, with_gaps, backwards, turned };
constexpr Lies all_ways[] = {Lies::in_order,  Lies::of_last,   Lies::of_first, Lies::of_one,
                             Lies::with_gaps, Lies::backwards, Lies::turned};

struct Place {
  Shape strides;
  std::int64_t first = 0, elements = 1;
};
Place place(const Shape& extents, Lies how) {
  const std::size_t rank = extents.size();
  Place p{Shape::filled(rank, 0)};
  std::int64_t next = 1;
  const auto along = [&](std::size_t d) {
    p.strides[d] = next;
    next *= extents[d];
    if (how == Lies::with_gaps) next += 2;
  };
  switch (how) {
    case Lies::of_one: break;
    case Lies::of_last: along(rank - 1); break;
    case Lies::of_first: along(0); break;
    case Lies::turned:
      for (std::size_t d = 0; d < rank; d++) along(d);
      break;
    default:
      for (std::size_t d = rank; d-- > 0;) along(d);
  }
  for (std::size_t d = 0; d < rank; d++) p.elements += p.strides[d] * (extents[d] - 1);
  if (how == Lies::backwards) {
    p.first = p.strides[rank - 1] * (extents[rank - 1] - 1);
    p.strides[rank - 1] = -p.strides[rank - 1];
  }
  return p;
}

/// Small numbers.
std::vector<std::byte> elements_of(DType t, std::int64_t n) {
  const std::size_t size = itemsize(t);
  std::vector<std::byte> bytes(static_cast<std::size_t>(n) * size);
  for (std::int64_t k = 0; k < n; k++) {
    const std::int64_t x = k * 7 % 13 - 6;
    auto bits = static_cast<std::uint64_t>(t == bool_ ? x & 1 : x);
    if (t == float64) bits = std::bit_cast<std::uint64_t>(static_cast<double>(x));
    if (t == float32) bits = std::bit_cast<std::uint32_t>(static_cast<float>(x));
    std::memcpy(bytes.data() + static_cast<std::size_t>(k) * size, &bits, size);
  }
  return bytes;
}

/// The sum (of bools: the exclusive or) of operands that lie so and of the index along dimension `index`.
KernelCase sum_of(const Shape& extents, DType t, const std::vector<Lies>& operands, Lies result, int index,
                  bool in_place) {
  KernelCase c;
  KernelBuilder b(static_cast<int>(extents.size()), 0);
  const auto add_arg = [&](Lies how, bool output) {
    const Place p = place(extents, how);
    c.args.push_back({p.strides, p.first, p.elements});
    c.inputs.push_back(elements_of(t, p.elements));
    return b.arg({t, output});
  };
  b.begin_stage(false);
  int sum = b.cast(b.index(index), t);
  for (const Lies how : operands)
    sum = b.binary(t == bool_ ? Code::xor_ : Code::add, sum, b.load(add_arg(how, false)));
  b.store(add_arg(result, true), sum);
  if (in_place) c.args.back().alias = 0;
  c.kernel = b.finish();
  c.extents = extents;
  c.start = Shape::filled(extents.size(), 3);
  return c;
}

}  // namespace

TEST_CASE("codegen: last dimensions of few points, whatever lies how") {
  std::size_t packed = 0, all = 0;
  for (const DType t : {float32, float64, int16, int8, bool_, int64}) {
    std::vector<KernelCase> cases;
    std::size_t next = 0;
    const auto add = [&](KernelCase c) {
      constexpr std::size_t every = 5;  // has no factor in common with the number of ways
      if (next++ % every == 0 || testing::full_scale()) cases.push_back(std::move(c));
    };
    for (const Shape& extents :
         {Shape{400, 3}, Shape{517, 4}, Shape{90, 15}, Shape{40, 7, 5}, Shape{9, 60, 2}, Shape{70, 2, 3, 4},
          Shape{5, 3}, Shape{1, 7}, Shape{33, 16}, Shape{2, 300, 2, 2}}) {
      const auto rank = static_cast<int>(extents.size());
      for (const Lies how : all_ways)
        for (const Lies result : {Lies::in_order, Lies::with_gaps, Lies::backwards, Lies::turned}) {
          const int index = static_cast<int>(how) % rank;
          add(sum_of(extents, t, {how, Lies::in_order, Lies::of_last}, result, index, false));
          add(sum_of(extents, t, {result, how, Lies::of_first}, result, index, true));
        }
    }
    for (const KernelCase& c : cases) {
      const LoopNest nest(std::make_shared<const Kernel>(c.kernel), item_of(c));
      packed += !nest.spec().packed.empty();
      all++;
    }
    check_generated(cases, t == float32 ? CodeTier::full : CodeTier::quick);
  }
  CHECK(packed * 3 > all);
  MESSAGE("kernels: " << all << ", across packed dimensions: " << packed);
}

}  // namespace codegen_packed_test
