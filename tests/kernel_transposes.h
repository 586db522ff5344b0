// Operands that are contiguous along another axis than the last one, as transposes are.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "cuda_launches.h"
#include "kernel_helpers.h"
#include "runtime/kernel_builder.h"

namespace shardarray::test {

struct TransposeOf {
  DType type;
  Shape extents;
  std::size_t along = 0;     // the axis along which they lie
  std::int64_t gap = 0;      // elements behind each of their rows
  std::int64_t first = 0;    // elements in front of all of them, and of the result
  std::size_t operands = 1;  // that lie so
  bool in_place = false;     // the result lies on an operand that lies as it does
  bool roots = false;        // of every operand, as soon as it is read
};

/// What lies densely in memory in this order of the axes, outermost first, with a gap behind the rows.
inline Shape strides_in_order(const Shape& extents, const std::vector<std::size_t>& order, std::int64_t gap) {
  Shape strides = Shape::filled(extents.size(), 0);
  std::int64_t next = 1;
  for (std::size_t k = order.size(); k-- > 0;) {
    strides[order[k]] = next;
    next *= extents[order[k]];
    if (k + 1 == order.size()) next += gap;
  }
  return strides;
}

/// The sum (of bools: the exclusive or; or of roots) of the operands that lie so, of one that lies as the result does, of a number per
/// point along the last axis, and of the index along the first one.
inline KernelCase transposes(const TransposeOf& of, std::uint64_t seed) {
  const std::size_t rank = of.extents.size();
  std::vector<std::size_t> order;
  for (std::size_t d = 0; d < rank; d++) order.push_back(d);
  const Shape straight = strides_in_order(of.extents, order, 0);
  std::swap(order[of.along], order[rank - 1]);
  const Shape crosswise = strides_in_order(of.extents, order, of.gap);
  Shape of_last = Shape::filled(rank, 0);
  of_last[rank - 1] = 1;

  KernelCase c;
  Random random(seed);
  KernelBuilder b(static_cast<int>(rank), 0);
  const auto add_arg = [&](bool output, const Shape& strides) {
    std::int64_t elements = of.first + 1;
    for (std::size_t d = 0; d < rank; d++)
      elements += strides[d] * std::max<std::int64_t>(of.extents[d] - 1, 0);
    c.args.push_back({strides, of.first, elements});
    c.inputs.push_back(random_elements(random, of.type, elements));
    return b.arg({of.type, output});
  };
  b.begin_stage(false);
  const auto both = [&](int v, int w) { return b.binary(of.type == bool_ ? Code::xor_ : Code::add, v, w); };
  const auto read = [&](int arg) { return of.roots ? b.unary(Code::sqrt, b.load(arg)) : b.load(arg); };
  const int same = of.roots ? add_arg(false, straight) : -1;
  int sum = of.roots ? read(same) : b.cast(b.index(0), of.type);
  for (std::size_t k = 0; k < of.operands; k++) sum = both(sum, read(add_arg(false, crosswise)));
  const int other = add_arg(false, straight);
  sum = both(both(sum, read(other)), read(add_arg(false, of_last)));
  const int out = add_arg(true, straight);
  b.store(out, sum);
  if (of.in_place) c.args[static_cast<std::size_t>(out)].alias = other;
  c.kernel = b.finish();
  c.extents = of.extents;
  c.start = Shape::filled(rank, 3);
  return c;
}

/// Of all sizes of elements: whole tiles, others, some that end within runs of 16 bytes, that begin within one, with gaps; two to four
/// axes, along each but the last; so many that tiles are small, and more than a block has memory for.
inline std::vector<TransposeOf> transposes_of_all_kinds() {
  std::vector<TransposeOf> all;
  for (const DType t : {bool_, uint8, int16, uint32, float32, int64, float64}) {
    all.push_back({t, {64, 128}});
    all.push_back({t, {80, 48}, 0, 0, 0, 1, true});
    all.push_back({t, {65, 131}});
    all.push_back({t, {17, 96}, 0, 15});
    all.push_back({t, {96, 80}, 0, 0, 1});
    all.push_back({t, {128, 64}, 0, 3, 0, 2});
  }
  for (const std::size_t operands : {1, 2, 3})
    all.push_back({float32, {64, 80}, 0, 0, 0, operands, true, true});
  all.push_back({float32, {3, 70, 66}, 1});
  all.push_back({float32, {70, 3, 66}, 0});
  all.push_back({uint8, {2, 66, 3, 70}, 1, 2});
  all.push_back({int16, {33, 2, 2, 80}, 0, 0, 0, 2, true});
  all.push_back({float32, {70, 66}, 0, 2, 0, 3});
  all.push_back({float64, {40, 66}, 0, 0, 0, 6});
  all.push_back({int16, {130, 64}, 0, 0, 0, 6});
  return all;
}

}  // namespace shardarray::test
