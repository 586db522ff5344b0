// update_rows: overwrites rows at positions that are data, or combines them with updates.
#include <fmt/core.h>

#include "base/sizes.h"
#include "ops/api.h"
#include "ops/combined_rows.h"
#include "ops/rules.h"

namespace shardarray {

using namespace rules;

static std::size_t rank_before(const Attrs& a) { return static_cast<std::size_t>(a.lo[0]); }

static Types update_rows_type(const Call& c) {
  const Type &x = c.in[0], &rows = c.in[1], &updates = c.in[2];
  const std::size_t b = rank_before(*c.attrs);
  if (x.dtype != updates.dtype || !is_integer(rows.dtype) || x.shape.size() <= b ||
      rows.shape.size() != b + 1 || !(part_of(x.shape, 0, b) == part_of(rows.shape, 0, b)) ||
      !(joined_shape(rows.shape, part_of(x.shape, b + 1, x.shape.size())) == updates.shape))
    throw InternalError(fmt::format(
        "update_rows: {}, rows {}, updates {}, {} batch dimensions. They must fit. Please report this.",
        to_string(x), to_string(rows), to_string(updates), b));
  return {x};
}

// The updates of a row are taken in order, so each device needs all that may meet its rows; x may be sharded along any dimension.
static Rule update_rows_rule(const Call& c) {
  const std::size_t b = rank_before(*c.attrs);
  Rule r;
  std::vector<DimFactors> x, updates;
  for (const std::int64_t size : c.in[0].shape) x.push_back(add_factor(r, size));
  updates = x;
  updates[b] = add_factor(r, c.in[1].shape[b], Role::whole);
  r.operands = {x, {updates.begin(), updates.begin() + static_cast<std::ptrdiff_t>(b + 1)}, updates};
  r.results = {x};
  return r;
}

static Batched update_rows_batch(const BatchArgs& b) {
  const Attrs& a = b.node.attrs();
  return mapped(
      {primitive::update_rows(with_rows(b, 0), with_rows(b, 1), with_rows(b, 2), {a.reducer, a.lo[0] + 1})});
}

static LocalCall update_rows_call(const LowerArgs& l) {
  const std::size_t b = rank_before(*l.call.attrs);
  const Shape &x = l.out[0].size, &rows = l.in[1].size;
  const std::int64_t batch = num_elements(part_of(x, 0, b)),
                     width = num_elements(part_of(x, b + 1, x.size()));
  return {.name = "update_rows",
          .in_shapes = {{batch, x[b], width}, {batch, rows[b]}, {batch, rows[b], width}},
          .out_shapes = {{batch, x[b], width}},
          .params = {l.out[0].lo[b], static_cast<std::int64_t>(l.call.attrs->reducer)}};
}

// x [b.., v, d..], row numbers [b.., n], updates [b.., n, d..]: each one overwrites its row of x, or is combined with it by the reducer: sum,
// prod, max, min; in the order of n. Rows outside of x are ignored. lo = {rank of b}. Only overwriting and sums are differentiable here:
// callers supply the derivative of the others.
SHARDARRAY_OP op_update_rows{
    .name = "update_rows",
    .form = Form::library,
    .rule = update_rows_rule,
    .type = update_rows_type,
    .linearity =
        [](const Call& c, int operand) {
          const Reducer r = c.attrs->reducer;
          return operand != 1 && (r == Reducer::none || r == Reducer::sum) ? Linear::joint : Linear::no;
        },
    .jvp =
        [](const JvpArgs& v) {
          const Attrs& a = v.node.attrs();
          if (a.reducer != Reducer::none && a.reducer != Reducer::sum)
            throw InternalError(
                "update_rows: no derivative by this reducer. Only sums have one. Please report this.");
          const auto given = [&](std::size_t k) {
            return v.tangents[k].has_value() ? v.tangents[k] : zeros_of(type_of(v.in[k]));
          };
          if (!v.tangents[0].has_value() && !v.tangents[2].has_value()) return Arrays{Array()};
          return Arrays{primitive::update_rows(given(0), v.in[1], given(2), {a.reducer, a.lo[0]})};
        },
    .transpose =
        [](const TransposeArgs& t) {
          const Attrs& a = t.node.attrs();
          const Array &g = t.cotangents[0], &rows = t.in[1];
          const bool is_sum = a.reducer == Reducer::sum;
          Arrays r(3);
          if (t.linear[0])
            r[0] = is_sum
                       ? g
                       : primitive::update_rows(g, rows, zeros_of(type_of(t.in[2])), {.batch_rank = a.lo[0]});
          if (!t.linear[2]) return r;
          r[2] = primitive::take(g, rows, a.lo[0], 1);
          if (is_sum) return r;
          const std::size_t b = rank_before(a);
          Shape dims;
          for (std::size_t d = 0; d <= b; d++) dims.push_back(from_last(d, r[2].shape().size()));
          const Array last = last_of_row(rows, a.lo[0], g.shape()[b]);
          const Array stays =  // what is written over has no derivative
              primitive::binary(op_eq, last, primitive::iota(rows.shape(), b, last.dtype()));
          r[2] = primitive::select(primitive::broadcast(stays, r[2].shape(), dims), r[2],
                                   zeros_of(type_of(r[2])));
          return r;
        },
    .batch = update_rows_batch,
    .lower = update_rows_call,
    .trait = Trait::in_place,
    .whole_complex = true};

Array primitive::update_rows(const Array& x, const Array& rows, const Array& updates,
                             const UpdateOptions& o) {
  Attrs a;
  a.lo = {o.batch_rank};
  a.reducer = o.reducer;
  return record(op_update_rows, {x, rows, updates}, std::move(a));
}

}  // namespace shardarray
