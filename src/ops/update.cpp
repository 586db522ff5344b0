// update: overwrites a part whose start is data.
#include <fmt/core.h>

#include <algorithm>

#include "base/sizes.h"
#include "ops/rules.h"

namespace shardarray {

using namespace rules;

static std::size_t batch_rank(const Attrs& a) { return static_cast<std::size_t>(a.lo[0]); }
// Whether the start in dimension d is data.
static bool varies(const Attrs& a, std::size_t d) {
  return std::find(a.dims.begin(), a.dims.end(), static_cast<std::int64_t>(d)) != a.dims.end();
}

static Types update_type(const Call& c) {
  const Type &x = c.in[0], &part = c.in[1];
  const Attrs& a = *c.attrs;
  const std::size_t b = batch_rank(a);
  bool fits =
      x.dtype == part.dtype && x.shape.size() == part.shape.size() && c.in.size() == 2 + a.dims.size();
  for (std::size_t d = 0; fits && d < x.shape.size(); d++)
    fits = varies(a, d) ? d >= b : part.shape[d] == x.shape[d];
  for (std::size_t k = 2; fits && k < c.in.size(); k++)
    fits = (c.in[k].dtype == DType::int32 || c.in[k].dtype == DType::int64) &&
           c.in[k].shape == Shape(x.shape.begin(), x.shape.begin() + static_cast<std::ptrdiff_t>(b));
  if (!fits)
    throw InternalError(
        fmt::format("update: operands {} and {}, {} starts. They must fit. Please report this.", to_string(x),
                    to_string(part), c.in.size() - 2));
  return {x};
}

// The part must not be sharded along dimensions where its start is data; x may be.
static Rule update_rule(const Call& c) {
  Rule r;
  std::vector<DimFactors> x, part;
  for (std::size_t d = 0; d < c.in[0].shape.size(); d++) {
    x.push_back(add_factor(r, c.in[0].shape[d]));
    part.push_back(varies(*c.attrs, d) ? add_factor(r, c.in[1].shape[d], Role::whole) : x.back());
  }
  r.operands = {x, part};
  const std::vector<DimFactors> start(x.begin(),
                                      x.begin() + static_cast<std::ptrdiff_t>(batch_rank(*c.attrs)));
  r.operands.resize(c.in.size(), start);
  r.results = {x};
  return r;
}

static std::span<const Array> starts_of(std::span<const Array> in) { return in.subspan(2); }

// If starts are mapped, rows become a batch dimension.
static Batched update_batch(const BatchArgs& b) {
  const Attrs& a = b.node.attrs();
  Shape dims;
  for (const std::int64_t d : a.dims) dims.push_back(d + 1);
  const bool by_row = a.lo[0] > 0 || std::find(b.mapped.begin() + 2, b.mapped.end(), true) != b.mapped.end();
  Arrays starts;
  for (std::size_t k = 2; k < b.in.size(); k++) starts.push_back(by_row ? with_rows(b, k) : b.in[k]);
  return mapped({primitive::update(with_rows(b, 0), with_rows(b, 1), dims, starts,
                                   {a.reducer, by_row ? a.lo[0] + 1 : 0})});
}

static LocalCall update_call(const LowerArgs& l) {
  const std::size_t b = batch_rank(*l.call.attrs);
  const Box &x = l.out[0], &part = l.in[1];
  const std::int64_t batch =
      num_elements(Shape(x.size.begin(), x.size.begin() + static_cast<std::ptrdiff_t>(b)));
  LocalCall r{"update", {{batch}, {batch}}, {}, {static_cast<std::int64_t>(l.call.attrs->reducer)}};
  bool grows = false;  // the previous dimension varies as little as this one
  for (std::size_t d = b; d < x.size.size(); d++) {
    const bool may_lie_anywhere = varies(*l.call.attrs, d);
    Shape &all = r.in_shapes[0], &written = r.in_shapes[1];
    if (grows && !may_lie_anywhere) {
      all[all.size() - 1] *= x.size[d];
      written[written.size() - 1] *= part.size[d];
    } else {
      all.push_back(x.size[d]);
      written.push_back(part.size[d]);
      r.params.push_back(may_lie_anywhere ? x.lo[d] : -1);
    }
    grows = !may_lie_anywhere;
  }
  r.in_shapes.resize(l.in.size(), Shape{batch});
  r.out_shapes = {r.in_shapes[0]};
  return r;
}

// x [b.., n..], part [b.., m..], and for each of `dims` the start of the part there [b..]; in other dimensions m is n. What lies outside of
// x is ignored. The part overwrites, or is combined by the reducer: sum, prod, max, min. lo = {rank of b}. Only overwriting and sums are
// differentiable here: callers supply the derivative of the others.
SHARDARRAY_OP op_update{
    .name = "update",
    .form = Form::library,
    .rule = update_rule,
    .type = update_type,
    .linearity =
        [](const Call& c, int operand) {
          const Reducer r = c.attrs->reducer;
          return operand < 2 && (r == Reducer::none || r == Reducer::sum) ? Linear::joint : Linear::no;
        },
    .jvp =
        [](const JvpArgs& v) {
          const Attrs& a = v.node.attrs();
          if (a.reducer != Reducer::none && a.reducer != Reducer::sum)
            throw InternalError(
                "update: no derivative by this reducer. Only sums have one. Please report this.");
          const auto given = [&](std::size_t k) {
            return v.tangents[k].has_value() ? v.tangents[k] : zeros_of(type_of(v.in[k]));
          };
          if (!v.tangents[0].has_value() && !v.tangents[1].has_value()) return Arrays{Array()};
          return Arrays{primitive::update(given(0), given(1), a.dims, starts_of(v.in), {a.reducer, a.lo[0]})};
        },
    .transpose =
        [](const TransposeArgs& t) {
          const Attrs& a = t.node.attrs();
          const Array& g = t.cotangents[0];
          const Type& part = type_of(t.in[1]);
          Arrays r(t.in.size());
          if (t.linear[0])
            r[0] = a.reducer == Reducer::sum ? g
                                             : primitive::update(g, zeros_of(part), a.dims, starts_of(t.in),
                                                                 {.batch_rank = a.lo[0]});
          if (t.linear[1]) r[1] = primitive::part_at(g, part.shape, a.dims, starts_of(t.in));
          return r;
        },
    .batch = update_batch,
    .lower = update_call,
    .trait = Trait::in_place,
    .whole_complex = true};

// ---------------------------------------------------------------- recording
// `start` [b..], broadcast to `shape`, whose first dimensions are b.
static Array at_each(const Array& start, const Shape& shape) {
  Shape dims;
  for (std::size_t d = 0; d < start.shape().size(); d++) dims.push_back(from_last(d, shape.size()));
  return primitive::broadcast(start, shape, dims);
}
static Array combined(Reducer r, const Array& x, const Array& y) {
  if (r == Reducer::none) return y;
  if (r == Reducer::sum) return primitive::add(x, y);
  if (r == Reducer::prod) return primitive::mul(x, y);
  const bool is_bool = x.dtype() == DType::bool_;
  if (r == Reducer::max) return primitive::binary(is_bool ? op_or : op_max, x, y);
  return primitive::binary(is_bool ? op_and : op_min, x, y);
}
// For single elements in small arrays: compares all positions, in a loop that fuses with its neighbours.
static Array chosen_by_position(const Array& x, const Array& part, const Shape& dims,
                                std::span<const Array> starts, Reducer r) {
  const Shape& shape = x.shape();
  Array here;
  for (std::size_t k = 0; k < dims.size(); k++) {
    const Array own = primitive::iota(shape, static_cast<std::size_t>(dims[k]), starts[k].dtype());
    const Array equal = primitive::binary(op_eq, own, at_each(starts[k], shape));
    here = here.has_value() ? primitive::binary(op_and, here, equal) : equal;
  }
  return primitive::select(here, combined(r, x, primitive::broadcast_to(part, shape)), x);
}

Array primitive::update(const Array& x, const Array& part, const Shape& dims, std::span<const Array> starts,
                        const UpdateOptions& o) {
  constexpr std::int64_t few = 64;
  const auto batch = static_cast<std::ptrdiff_t>(o.batch_rank);
  const bool is_position = std::all_of(dims.begin(), dims.end(), [&](std::int64_t d) {
    return part.shape()[static_cast<std::size_t>(d)] == 1;
  });
  if (is_position && num_elements(Shape(x.shape().begin() + batch, x.shape().end())) <= few)
    return chosen_by_position(x, part, dims, starts, o.reducer);
  Attrs a;
  a.dims = dims;
  a.lo = {o.batch_rank};
  a.reducer = o.reducer;
  Arrays in{x, part};
  for (const Array& start : starts)
    in.push_back(itemsize(start.dtype()) < 4 ? primitive::cast(start, DType::int32) : start);
  return record(op_update, in, std::move(a));
}

// One dimension after the other, the one that shrinks most first, since intermediates are stored.
Array primitive::part_at(const Array& x, const Shape& sizes, const Shape& dims,
                         std::span<const Array> starts) {
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < dims.size(); k++) order.push_back(k);
  const auto left = [&](std::size_t k) {
    const auto d = static_cast<std::size_t>(dims[k]);
    return static_cast<double>(sizes[d]) / static_cast<double>(std::max<std::int64_t>(1, x.shape()[d]));
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return left(a) < left(b); });
  Array y = x;
  for (const std::size_t k : order) {
    const auto d = static_cast<std::size_t>(dims[k]);
    if (std::int64_t lo = 0;
        primitive::is_literal_int(starts[k], lo) && lo >= 0 && lo + sizes[d] <= y.shape()[d]) {
      y = primitive::slice_dim(y, d, lo, lo + sizes[d]);
      continue;
    }
    Shape rows(y.shape().begin(), y.shape().begin() + dims[k]);
    rows.push_back(sizes[d]);
    const Array at = primitive::add(at_each(starts[k], rows), primitive::iota(rows, d, starts[k].dtype()));
    y = primitive::take(y, at, dims[k], 1);
  }
  return y;
}

}  // namespace shardarray
