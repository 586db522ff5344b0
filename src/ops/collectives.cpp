// Collectives: ops over the rows of an enclosing map. Batching over their axis turns them into ops on a dimension, which the compiler
// places and moves like any other: a sum over rows that are devices becomes an all_reduce, a transposition an all_to_all. So vmap, pmap and
// shard_map agree, and there is only one lowering.
#include <fmt/core.h>

#include <algorithm>

#include "graph/region.h"
#include "ops/asked.h"
#include "ops/complex.h"
#include "ops/rules.h"

namespace shardarray {

using namespace rules;

namespace {

// ---------------------------------------------------------------- groups
std::int64_t group_size(const Attrs& a, std::int64_t axis_size) { return a.hi.empty() ? axis_size : a.hi[0]; }
bool equal_groups(const Attrs& a) {
  return std::all_of(a.hi.begin(), a.hi.end(), [&](std::int64_t n) { return n == a.hi[0]; });
}
std::int64_t axis_size_of(const Call& c) { return c.attrs->axes[0]->size; }

Array permute_rows(const Array& x, const Shape& source) {
  Attrs a;
  a.dims = {from_last(0, x.shape().size())};
  a.lo = source;
  return record(op_permute_rows, {x}, std::move(a));
}

// The permutation that moves dimension `from` to `to`.
Shape moving(std::size_t rank, std::size_t from, std::size_t to) {
  Shape perm;
  for (std::size_t d = 0; d < rank; d++)
    if (d != from) perm.push_back(static_cast<std::int64_t>(d));
  perm.insert(to, static_cast<std::int64_t>(from));
  return perm;
}
Array move_dim(const Array& x, std::size_t from, std::size_t to) {
  return from == to ? x : primitive::transpose(x, moving(x.shape().size(), from, to));
}

// Groups that reshapes alone can form: consecutive rows, or every n-th row.
enum class Grouping { neighbours, strided, any };
Grouping grouping(const Attrs& a) {
  const std::int64_t g = a.hi[0], count = static_cast<std::int64_t>(a.hi.size());
  bool neighbours = true, strided = true;
  for (std::int64_t k = 0; k < g * count; k++) {
    const std::int64_t at = a.lo[static_cast<std::size_t>(k)];
    neighbours &= at == k;
    strided &= at == k / g + k % g * count;
  }
  return neighbours ? Grouping::neighbours : strided ? Grouping::strided : Grouping::any;
}

// [N, ...] -> [groups, size, ...] and back.
Array grouped(const Array& x, const Attrs& a) {
  const std::int64_t g = a.hi[0], count = static_cast<std::int64_t>(a.hi.size());
  const Grouping kind = grouping(a);
  Shape shape = x.shape();
  shape[0] = kind == Grouping::strided ? g : count;
  shape.insert(1, kind == Grouping::strided ? count : g);
  const Array split = primitive::reshape(kind == Grouping::any ? permute_rows(x, a.lo) : x, shape);
  return kind == Grouping::strided ? move_dim(split, 0, 1) : split;
}
Array ungrouped(const Array& x, const Attrs& a) {
  const Grouping kind = grouping(a);
  const Array ordered = kind == Grouping::strided ? move_dim(x, 0, 1) : x;
  Shape shape = ordered.shape();
  shape[0] *= shape[1];
  shape.erase(1);
  const Array rows = primitive::reshape(ordered, shape);
  return kind == Grouping::any ? permute_rows(rows, inverse(a.lo)) : rows;
}

// [.., ...] -> [.., n, ...]: inserts a dimension of n copies at `dim`.
Array repeated(const Array& x, std::size_t dim, std::int64_t n) {
  Shape shape = x.shape(), dims;
  shape.insert(dim, n);
  for (std::size_t d = 0; d < shape.size(); d++)
    if (d != dim) dims.push_back(from_last(d, shape.size()));
  return primitive::broadcast(x, shape, dims);
}

// ---------------------------------------------------------------- batching
bool binds(const BatchArgs& b) { return b.node.attrs().axes[0] == b.axis; }

// Another axis is being batched: the rows pass through, since dimensions count from the last.
Batched pass(const BatchArgs& b) { return mapped({record(*b.node.op, b.in, b.node.attrs())}); }

Array rows_of(const BatchArgs& b) { return asked(with_rows(b, 0)); }

// pmax and pmin have no derivative, but the row reduction that they become has, so its operand is marked.
Arrays no_rule(const JvpArgs& v) {
  const std::string& name = v.node.attrs().letters;
  throw Error(fmt::format(
      "grad: differentiation rule for '{}' not implemented ({}:{}). Take stop_gradient of its operand.",
      name.empty() ? v.node.op->name : name, v.node.where.file, v.node.where.line));
}

SHARDARRAY_OP op_underived = elementwise({.name = "underived",
                                          .jvp = no_rule,
                                          .scalar = [](ScalarArgs& s) { s.out[0] = s.in[0]; },
                                          .on_parts = complex_ops::each_part<op_underived>});
Array underived(const Array& x, const BatchArgs& b) { return primitive::underived(x, b.node.op->name); }

Batched on_rows(const Array& x, const BatchArgs& b) { return mapped({place_rows(x, b.axis)}); }

Array reduce_groups(Reducer r, const Array& x, const Attrs& a) {
  if (equal_groups(a)) return ungrouped(repeated(primitive::reduce(r, grouped(x, a), {1}), 1, a.hi[0]), a);
  const Array sorted = permute_rows(x, a.lo);
  Arrays parts;
  std::int64_t begin = 0;
  for (std::int64_t size : a.hi) {
    parts.push_back(
        repeated(primitive::reduce(r, primitive::slice_dim(sorted, 0, begin, begin + size), {0}), 0, size));
    begin += size;
  }
  return permute_rows(primitive::concatenate(parts, 0), inverse(a.lo));
}

template <Reducer kind> Batched reduce_batch(const BatchArgs& b) {
  if (!binds(b)) return pass(b);
  const Attrs& a = b.node.attrs();
  const Array x = asked(kind == Reducer::sum ? b.in[0] : underived(b.in[0], b));
  const Reducer r = x.dtype() != DType::bool_ ? kind : kind == Reducer::max ? Reducer::any : Reducer::all;
  if (!a.hi.empty()) return on_rows(reduce_groups(r, b.mapped[0] ? x : add_leading(x, b.axis->size), a), b);
  if (b.mapped[0]) return {{primitive::reduce(r, x, {0})}, {false}};  // unmapped: all rows are equal
  return {{r == Reducer::sum ? primitive::mul(x, primitive::like_whole(x, b.axis->size)) : x}, {false}};
}

Batched all_gather_batch(const BatchArgs& b) {
  if (!binds(b)) return pass(b);
  const Attrs& a = b.node.attrs();
  const Array x = rows_of(b);
  const std::size_t rank = x.shape().size();  // rank of the result without rows
  const std::size_t dim = from_first(a.dims[0], rank);
  if (a.hi.empty()) return {{move_dim(x, 0, dim)}, {false}};
  const Array groups = move_dim(grouped(x, a), 1, dim + 1);  // [groups, .., size, ..]
  return on_rows(ungrouped(repeated(groups, 1, a.hi[0]), a), b);
}

Batched reduce_scatter_batch(const BatchArgs& b) {
  if (!binds(b)) return pass(b);
  const Attrs& a = b.node.attrs();
  const Array x = rows_of(b);
  const std::size_t dim = from_first(a.dims[0], x.shape().size() - 1);  // without rows
  if (a.hi.empty()) return on_rows(move_dim(primitive::reduce(Reducer::sum, x, {0}), dim, 0), b);
  return on_rows(ungrouped(move_dim(primitive::reduce(Reducer::sum, grouped(x, a), {1}), dim + 1, 1), a), b);
}

// [rows, .., parts at split, ..] -> [parts, .., rows at concat, ..], after `lead` dimensions.
Array swap_rows(const Array& x, std::size_t lead, std::size_t split, std::size_t concat) {
  const std::size_t rank = x.shape().size();
  Shape rest, perm;
  for (std::size_t d = lead + 1; d < rank; d++)
    if (d != lead + 1 + split) rest.push_back(static_cast<std::int64_t>(d));
  rest.insert(concat, static_cast<std::int64_t>(lead));
  for (std::size_t d = 0; d < lead; d++) perm.push_back(static_cast<std::int64_t>(d));
  perm.push_back(static_cast<std::int64_t>(lead + 1 + split));
  for (std::int64_t d : rest) perm.push_back(d);
  return primitive::transpose(x, perm);
}

Batched all_to_all_batch(const BatchArgs& b) {
  if (!binds(b)) return pass(b);
  const Attrs& a = b.node.attrs();
  const Array x = rows_of(b);
  const std::size_t rank = x.shape().size() - 1;
  const std::size_t split = from_first(a.dims[0], rank), concat = from_first(a.dims[1], rank);
  if (a.hi.empty()) return on_rows(swap_rows(x, 0, split, concat), b);
  return on_rows(ungrouped(swap_rows(grouped(x, a), 1, split, concat), a), b);
}

// With several axes the innermost is bound first; its rows stay a dimension until the outer ones are bound.
Batched ppermute_batch(const BatchArgs& b) {
  const Attrs& given = b.node.attrs();
  if (given.axes.back() != b.axis) return pass(b);
  const Array x = rows_of(b);
  Attrs a = given;
  a.axes.pop_back();
  a.dims.insert(0, from_last(0, x.shape().size()));
  if (!a.axes.empty()) return mapped({record(op_ppermute, {x}, std::move(a))});
  const std::size_t rank = x.shape().size(), bound = a.dims.size();
  Shape perm = {}, order, merged;
  std::int64_t rows = 1;
  for (std::int64_t d : a.dims) {
    perm.push_back(static_cast<std::int64_t>(from_first(d, rank)));
    rows *= x.shape()[from_first(d, rank)];
  }
  for (std::size_t d = 0; d < rank; d++)
    if (std::find(perm.begin(), perm.end(), static_cast<std::int64_t>(d)) == perm.end())
      perm.push_back(static_cast<std::int64_t>(d));
  const Array front = primitive::transpose(x, perm);
  merged.push_back(rows);
  for (std::size_t d = bound; d < rank; d++) merged.push_back(front.shape()[d]);
  Shape source = Shape::filled(static_cast<std::size_t>(rows), -1);
  for (std::size_t k = 0; k < a.lo.size(); k++) source[static_cast<std::size_t>(a.hi[k])] = a.lo[k];
  const Array moved =
      primitive::reshape(permute_rows(primitive::reshape(front, merged), source), front.shape());
  return on_rows(primitive::transpose(moved, inverse(perm)), b);
}

Batched pbroadcast_batch(const BatchArgs& b) {
  if (!binds(b)) return pass(b);
  if (!b.mapped[0]) return {{b.in[0]}, {false}};
  const std::int64_t row = b.node.attrs().lo[0];
  Shape shape = b.in[0].shape();
  shape.erase(0);
  return {{primitive::reshape(primitive::slice_dim(asked(b.in[0]), 0, row, row + 1), shape)}, {false}};
}

Batched axis_index_batch(const BatchArgs& b) {
  if (!binds(b)) return {{record(op_axis_index, {}, b.node.attrs())}, {false}};
  return on_rows(primitive::iota({b.axis->size}, 0, DType::int32), b);
}

// ---------------------------------------------------------------- types
// Unbound, nothing may be sharded; collectives disappear before placement.
Rule collective_rule(const Call& c) {
  Rule r;
  for (const auto& [types, terms] : {std::pair{c.in, &r.operands}, std::pair{c.out, &r.results}})
    for (const Type& t : types) {
      terms->emplace_back();
      for (std::int64_t size : t.shape) terms->back().push_back(add_factor(r, size, Role::whole));
    }
  return r;
}

Types all_gather_type(const Call& c) {
  Type t = c.in[0];
  t.shape.insert(from_first(c.attrs->dims[0], t.shape.size() + 1), group_size(*c.attrs, axis_size_of(c)));
  return {t};
}
Types reduce_scatter_type(const Call& c) {
  Type t = c.in[0];
  t.shape.erase(from_first(c.attrs->dims[0], t.shape.size()));
  return {t};
}
Types all_to_all_type(const Call& c) {
  Type t = c.in[0];
  const std::size_t rank = t.shape.size();
  t.shape.erase(from_first(c.attrs->dims[0], rank));
  t.shape.insert(from_first(c.attrs->dims[1], rank), group_size(*c.attrs, axis_size_of(c)));
  return {t};
}

// The same collective on the cotangent, with other dimensions.
Arrays transposed(const Op& op, const TransposeArgs& t, Shape dims) {
  Attrs a = t.node.attrs();
  a.dims = std::move(dims);
  return {record(op, {t.cotangents[0]}, std::move(a))};
}

// The cotangents of all rows are summed at the source.
Arrays pbroadcast_transpose(const TransposeArgs& t) {
  Attrs axis;
  axis.axes = t.node.attrs().axes;
  const Array total = record(op_psum, {t.cotangents[0]}, axis), here = record(op_axis_index, {}, axis);
  const Array is_source =
      primitive::binary(op_eq, here, primitive::like(here, static_cast<double>(t.node.attrs().lo[0])));
  return {
      primitive::select(primitive::broadcast_to(is_source, total.shape()), total, zeros_of(type_of(total)))};
}

}  // namespace

SHARDARRAY_OP op_asked =
    elementwise({.name = "asked",
                 .linearity = joint,
                 .transpose = [](const TransposeArgs& t) { return Arrays{asked(t.cotangents[0])}; },
                 .scalar = [](ScalarArgs& s) { s.out[0] = s.in[0]; },
                 .trait = Trait::asked});
Array asked(const Array& x) { return record(op_asked, {x}); }

// attrs.axes: the map axes to sum over; lo, hi: the positions of all groups concatenated, and the group sizes. Likewise below.
SHARDARRAY_OP op_psum{.name = "psum",
                      .form = Form::collective,
                      .rule = collective_rule,
                      .linearity = joint,
                      .transpose = [](const TransposeArgs& t) { return transposed(op_psum, t, {}); },
                      .batch = reduce_batch<Reducer::sum>,
                      .on_parts = complex_ops::each_part<op_psum>};

SHARDARRAY_OP op_pmax{.name = "pmax",
                      .form = Form::collective,
                      .rule = collective_rule,
                      .jvp = no_rule,
                      .batch = reduce_batch<Reducer::max>};

SHARDARRAY_OP op_pmin{.name = "pmin",
                      .form = Form::collective,
                      .rule = collective_rule,
                      .jvp = no_rule,
                      .batch = reduce_batch<Reducer::min>};

// attrs.dims[0]: the new dimension of the result.
SHARDARRAY_OP op_all_gather{
    .name = "all_gather",
    .form = Form::collective,
    .rule = collective_rule,
    .type = all_gather_type,
    .linearity = joint,
    .transpose = [](const TransposeArgs& t) { return transposed(op_reduce_scatter, t, t.node.attrs().dims); },
    .batch = all_gather_batch};

// attrs.dims[0]: the operand's dimension that is scattered.
SHARDARRAY_OP op_reduce_scatter{
    .name = "psum_scatter",
    .form = Form::collective,
    .rule = collective_rule,
    .type = reduce_scatter_type,
    .linearity = joint,
    .transpose = [](const TransposeArgs& t) { return transposed(op_all_gather, t, t.node.attrs().dims); },
    .batch = reduce_scatter_batch,
    .on_parts = complex_ops::each_part<op_reduce_scatter>};

// dims[0]: the operand's dimension that is split, dims[1]: the result's new dimension.
SHARDARRAY_OP op_all_to_all{.name = "all_to_all",
                            .form = Form::collective,
                            .rule = collective_rule,
                            .type = all_to_all_type,
                            .linearity = joint,
                            .transpose =
                                [](const TransposeArgs& t) {
                                  const Shape& dims = t.node.attrs().dims;
                                  return transposed(op_all_to_all, t, {dims[1], dims[0]});
                                },
                            .batch = all_to_all_batch};

// Row attrs.lo[k] is sent to attrs.hi[k]; dims: the dimensions of axes already bound.
SHARDARRAY_OP op_ppermute{.name = "ppermute",
                          .form = Form::collective,
                          .rule = collective_rule,
                          .linearity = joint,
                          .transpose =
                              [](const TransposeArgs& t) {
                                Attrs a = t.node.attrs();
                                std::swap(a.lo, a.hi);
                                return Arrays{record(op_ppermute, {t.cotangents[0]}, std::move(a))};
                              },
                          .batch = ppermute_batch};

// The value of row attrs.lo[0].
SHARDARRAY_OP op_pbroadcast{.name = "pbroadcast",
                            .form = Form::collective,
                            .rule = collective_rule,
                            .linearity = joint,
                            .transpose = pbroadcast_transpose,
                            .batch = pbroadcast_batch};

// The position along attrs.axes[0], int32.
SHARDARRAY_OP op_axis_index{.name = "axis_index",
                            .form = Form::collective,
                            .rule = collective_rule,
                            .type =
                                [](const Call&) {
                                  return Types{{{}, DType::int32, false}};
                                },
                            .batch = axis_index_batch};

// ---------------------------------------------------------------- placement
static Array in_region(const Array& x, const std::vector<std::shared_ptr<const Axis>>& axes,
                       const Shape& dims) {
  Attrs a;
  a.sharding = std::make_shared<const Sharding>(region_sharding(axes, dims, x.shape().size()));
  a.bits = axes.back()->region->mesh ? 0 : 1;  // pmap moves operands from other devices
  if (axes.back()->region->partial ||
      axes.back()->region->inside > 1)  // other dimensions belong to the inner maps
    for (std::size_t d = 0; d < x.shape().size(); d++)
      if (std::find(dims.begin(), dims.end(), from_last(d, x.shape().size())) == dims.end())
        a.hi.push_back(from_last(d, x.shape().size()));
  return record(op_constraint, {x}, std::move(a));
}

// Waits until the enclosing device axes are bound; after the outermost it becomes a constraint.
static Batched place_batch(const BatchArgs& b) {
  const std::shared_ptr<const Axis> next = b.node.attrs().axes.back()->outer;
  Attrs a = b.node.attrs();
  if (b.axis != next) return pass(b);
  a.axes.push_back(next);
  a.dims.push_back(b.mapped[0] ? from_last(0, b.in[0].shape().size()) : 0);
  Array x;
  if (next->outer) {
    x = record(op_place, b.in, std::move(a));
  } else {
    x = in_region(b.in[0], a.axes, a.dims);
  }
  return {{x}, {b.mapped[0]}};
}

// Dimension attrs.dims[k] is laid out over device axis attrs.axes[k], innermost first; 0: none is.
SHARDARRAY_OP op_place{
    .name = "place",
    .form = Form::collective,
    .rule = collective_rule,
    .linearity = joint,
    .transpose =
        [](const TransposeArgs& t) { return Arrays{record(op_place, {t.cotangents[0]}, t.node.attrs())}; },
    .batch = place_batch,
    .trait = Trait::device_rows};

static Array placed(const Array& x, const std::shared_ptr<const Axis>& axis, std::int64_t dim) {
  if (!axis->region) return x;
  Attrs a;
  a.axes = {axis};
  a.dims = {dim};
  return axis->outer ? record(op_place, {x}, std::move(a)) : in_region(x, a.axes, a.dims);
}
Array place_rows(const Array& x, const std::shared_ptr<const Axis>& axis) {
  return placed(x, axis, from_last(0, x.shape().size()));
}
Array place_whole(const Array& x, const std::shared_ptr<const Axis>& axis) { return placed(x, axis, 0); }

Array primitive::underived(const Array& x, const char* function) {
  Attrs a;
  a.letters = function;
  return record(op_underived, {x}, std::move(a));
}

}  // namespace shardarray
