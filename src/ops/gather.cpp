// take, scatter: rows at positions that are data.
#include <fmt/core.h>

#include "base/sizes.h"
#include "ops/api.h"
#include "ops/complex.h"
#include "ops/row_index.h"
#include "ops/rules.h"
#include "shardarray/ordering.h"

namespace shardarray {

using namespace rules;

static std::size_t batch_rank(const Attrs& a) { return static_cast<std::size_t>(a.lo[0]); }
static std::size_t index_rank(const Attrs& a) { return static_cast<std::size_t>(a.hi[0]); }

[[noreturn]] static void misfit(const Call& c) {
  throw InternalError(fmt::format(
      "{}: operands {} and {} with {} batch and {} index dimensions. They must agree there, indices be "
      "integers.",
      c.op->name, to_string(c.in[0]), to_string(c.in[1]), batch_rank(*c.attrs), index_rank(*c.attrs)));
}

// ---------------------------------------------------------------- take
static Types take_type(const Call& c) {
  const std::size_t b = batch_rank(*c.attrs), n = index_rank(*c.attrs);
  const Shape &table = c.in[0].shape, &index = c.in[1].shape;
  if (!is_integer(c.in[1].dtype) || table.size() <= b || index.size() != b + n ||
      !(part_of(table, 0, b) == part_of(index, 0, b)))
    misfit(c);
  return {{joined_shape(index, part_of(table, b + 1, table.size())), c.in[0].dtype, c.in[0].weak}};
}

static Rule take_rule(const Call& c) {
  const std::size_t b = batch_rank(*c.attrs);
  Rule r;
  std::vector<DimFactors> table, index;
  for (std::int64_t size : c.in[1].shape) index.push_back(add_factor(r, size));
  std::vector<DimFactors> out = index;
  for (std::size_t d = 0; d < c.in[0].shape.size(); d++) {
    const std::int64_t size = c.in[0].shape[d];
    table.push_back(d < b    ? index[d]
                    : d == b ? add_factor(r, size, Role::reduce,
                                          Reducer::any)  // a row outside the tile gives zero bits there
                             : add_factor(r, size));
    if (d > b) out.push_back(table.back());
  }
  r.operands = {table, index};
  r.results = {out};
  return r;
}

// If both are mapped, one more batch dimension. If only the indices are, and there is no batch, they just get one more dimension.
static Batched take_batch(const BatchArgs& b) {
  const auto batch = b.node.attrs().lo[0], n = b.node.attrs().hi[0];
  if (!b.mapped[0] && batch == 0) return mapped({primitive::take(b.in[0], b.in[1], 0, n + 1)});
  return mapped({primitive::take(with_rows(b, 0), with_rows(b, 1), batch + 1, n)});
}

// Table [b..,v,d..], indices [b..,n..] -> [b..,n..,d..]; lo = {rank of b}, hi = {rank of n}; out of range: 0.
SHARDARRAY_OP op_take{
    .name = "take",
    .form = Form::take,
    .rule = take_rule,
    .type = take_type,
    .linearity = [](const Call&, int operand) { return operand == 0 ? Linear::each : Linear::no; },
    .jvp =
        [](const JvpArgs& v) {
          return Arrays{v.tangents[0].has_value() ? record(op_take, {v.tangents[0], v.in[1]}, v.node.attrs())
                                                  : Array()};
        },
    .transpose =
        [](const TransposeArgs& t) {
          const Attrs& a = t.node.attrs();
          return Arrays{
              primitive::scatter(t.in[1], t.cotangents[0], a.lo[0], a.hi[0], t.in[0].shape()[batch_rank(a)]),
              Array()};
        },
    .batch = take_batch};

// ---------------------------------------------------------------- scatter
static Types scatter_type(const Call& c) {
  const std::size_t b = batch_rank(*c.attrs), n = index_rank(*c.attrs);
  const Shape &index = c.in[0].shape, &updates = c.in[1].shape;
  if (!is_integer(c.in[0].dtype) || index.size() != b + n || updates.size() < b + n ||
      !(part_of(updates, 0, b + n) == index))
    misfit(c);
  return {{joined_shape(joined_shape(part_of(index, 0, b), c.attrs->shape),
                        part_of(updates, b + n, updates.size())),
           c.in[1].dtype, c.in[1].weak}};
}

static Rule scatter_rule(const Call& c) {
  const std::size_t b = batch_rank(*c.attrs), n = index_rank(*c.attrs);
  Rule r;
  std::vector<DimFactors> updates, out;
  for (std::size_t d = 0; d < c.in[1].shape.size(); d++) {
    const bool summed = d >= b && d < b + n;
    const std::int64_t size = c.in[1].shape[d];
    updates.push_back(summed ? add_summed(r, c, size, c.attrs->reducer) : add_factor(r, size));
    if (d < b) out.push_back(updates.back());
  }
  out.push_back(add_factor(r, c.attrs->shape[0]));
  out.insert(out.end(), updates.begin() + static_cast<std::ptrdiff_t>(b + n), updates.end());
  r.operands = {{updates.begin(), updates.begin() + static_cast<std::ptrdiff_t>(b + n)}, updates};
  r.results = {out};
  return r;
}

static Batched scatter_batch(const BatchArgs& b) {
  const Attrs& a = b.node.attrs();
  return mapped(
      {primitive::scatter(with_rows(b, 0), with_rows(b, 1), a.lo[0] + 1, a.hi[0], a.shape[0], a.reducer)});
}

// Flattens [b.., n..] rows and [b.., n.., d..] updates to [b, n] and [b, n, d].
static LocalCall scatter_call(const LowerArgs& l) {
  const std::size_t b = batch_rank(*l.call.attrs), n = index_rank(*l.call.attrs);
  const Shape& updates = l.in[1].size;
  const auto size = [&](std::size_t from, std::size_t to) {
    return num_elements(part_of(updates, from, to));
  };
  const std::int64_t batch = size(0, b), count = size(b, b + n), width = size(b + n, updates.size());
  return {.name = "scatter",
          .in_shapes = {{batch, count}, {batch, count, width}},
          .out_shapes = {{batch, l.out[0].size[b], width}},
          .params = {l.out[0].lo[b], static_cast<std::int64_t>(l.call.attrs->reducer)}};
}

// Indices [b..,n..], updates [b..,n..,d..] -> [b..,v,d..]: rows combined by the reducer, starting at its identity; shape = {v}. Only sums
// are differentiable here: callers supply the derivative of the others.
SHARDARRAY_OP op_scatter{
    .name = "scatter",
    .form = Form::library,
    .rule = scatter_rule,
    .type = scatter_type,
    .linearity =
        [](const Call& c, int operand) {
          return operand == 1 && c.attrs->reducer == Reducer::sum ? Linear::each : Linear::no;
        },
    .jvp =
        [](const JvpArgs& v) {
          if (v.node.attrs().reducer != Reducer::sum)
            throw InternalError(
                "scatter: no derivative by this reducer. Only sums have one. Please report this.");
          return Arrays{v.tangents[1].has_value()
                            ? record(op_scatter, {v.in[0], v.tangents[1]}, v.node.attrs())
                            : Array()};
        },
    .transpose =
        [](const TransposeArgs& t) {
          return Arrays{
              Array(), primitive::take(t.cotangents[0], t.in[0], t.node.attrs().lo[0], t.node.attrs().hi[0])};
        },
    .batch = scatter_batch,
    .lower = scatter_call,
    .trait = Trait::sums,
    .on_parts = complex_ops::scatter};

// ---------------------------------------------------------------- take along an axis
Array take_fn::operator()(const Array& x, const Array& index, std::optional<std::int64_t> axis, TakeMode mode,
                          Where w) const {
  const Site site(w, "take");
  need_index("take", index);
  Array table = axis ? x : primitive::reshape(x, {num_elements(type_of(x, "take").shape)});
  const std::size_t dim = api::axis_of("take", axis.value_or(0), type_of(table, "take").shape);
  const std::int64_t rows = table.shape()[dim];
  need_rows("take", x, rows, axis.value_or(0), index);
  const auto [i, inside] = row_index(index, rows, mode, false);
  const Array taken = rows_along(table, i, dim);
  return inside.has_value() ? filled_outside(taken, inside, dim, outside_value(type_of(taken))) : taken;
}

// ---------------------------------------------------------------- take_along_axis
// take_along where other dimensions of size 1 are broadcast; x is not repeated along them: they belong to the index alone, like the axis.
// The rest is a batch.
static Array taken_beside(const Array& x, const Array& index, std::size_t dim) {
  const Shape& from = x.shape();
  Shape batch, own, wanted = index.shape(), rows;
  for (std::size_t d = 0; d < from.size(); d++) {
    const bool is_own = d == dim || from[d] == 1;
    (is_own ? own : batch).push_back(static_cast<std::int64_t>(d));
    if (!is_own) wanted[d] = from[d];
    if (!is_own) rows.push_back(from[d]);
  }
  rows.push_back(from[dim]);
  const Shape order = joined_shape(batch, own);
  const Array at = primitive::transpose(primitive::broadcast_to(index, wanted), order);
  // after the batch x has the axis and dimensions of size 1
  const Array table = primitive::reshape(primitive::transpose(x, order), rows);
  return primitive::transpose(primitive::take(table, at, static_cast<std::int64_t>(batch.size()),
                                              static_cast<std::int64_t>(own.size())),
                              inverse(order));
}
Array take_along_axis_fn::operator()(const Array& x, const Array& index, std::int64_t axis, TakeMode mode,
                                     Where w) const {
  const Site site(w, "take_along_axis");
  need_index("take_along_axis", index);
  const Shape &shape = type_of(x, "take_along_axis").shape, &wanted = index.shape();
  const std::size_t dim = api::axis_of("take_along_axis", axis, shape);
  if (wanted.size() != shape.size())
    throw ShapeError(fmt::format(
        "take_along_axis: an index {} of {}. Both have one rank. Use take for one index of all rows.",
        to_string(type_of(index)), to_string(type_of(x))));
  need_rows("take_along_axis", x, shape[dim], axis, index);
  Shape sides[] = {shape, wanted};
  sides[0][dim] = sides[1][dim] = 1;
  api::common_shape("take_along_axis", sides);
  const auto [at, inside] = row_index(index, shape[dim], mode, true);
  Array picked = taken_beside(x, at, dim);
  if (!inside.has_value()) return picked;
  return primitive::select(primitive::broadcast_to(inside, picked.shape()), picked,
                           outside_value(type_of(picked)));
}

}  // namespace shardarray
