// sort, argsort.
#include <fmt/core.h>

#include <algorithm>

#include "base/count_text.h"
#include "ops/api.h"
#include "ops/complex.h"
#include "ops/rules.h"
#include "shardarray/ops.h"
#include "shardarray/ordering.h"

namespace shardarray {

using namespace rules;

static Types sort_type(const Call& c) {
  for (const Type& t : c.in)
    if (!(t.shape == c.in[0].shape))
      throw InternalError(fmt::format("sort: operands {} and {}. They must have one shape.",
                                      to_string(c.in[0]), to_string(t)));
  return Types(c.in);
}

static Rule sort_rule(const Call& c) {
  Rule r = pointwise_rule(c);
  r.factors[from_first(c.attrs->dims[0], c.in[0].shape.size())].role = Role::whole;
  r.results.assign(c.in.size(), r.operands[0]);
  return r;
}

// The permutation is found by also sorting the positions.
static Arrays sort_jvp(const JvpArgs& v) {
  const Shape& shape = v.in[0].shape();
  const std::size_t dim = from_first(v.node.attrs().dims[0], shape.size());
  const Array with_positions[] = {v.in[0], primitive::iota(shape, dim, DType::int32)};
  const Array order = primitive::sort(with_positions, dim)[1];
  Arrays r;
  for (const Array& t : v.tangents)
    r.push_back(t.has_value() ? primitive::take_along(t, order, dim) : Array());
  return r;
}

static LocalCall sort_call(const LowerArgs& l) {
  return library_call(l, "sort", {l.call.attrs->dims[0] + std::ssize(l.call.in[0].shape)});
}

// Sorts all operands along attrs.dims[0] by the first, stably.
SHARDARRAY_OP op_sort{.name = "sort",
                      .form = Form::library,
                      .rule = sort_rule,
                      .type = sort_type,
                      .jvp = sort_jvp,
                      .lower = sort_call,
                      .trait = Trait::sort,
                      .on_parts = complex_ops::sort};

// Sorts the operands along an axis by the first; descending ones are reversed before and after, so that equal elements keep their order.
static Array sorted_by_first(std::span<const Array> operands, std::size_t dim, bool descending,
                             std::size_t result) {
  if (!descending) return primitive::sort(operands, dim)[result];
  const Shape along{from_last(dim, operands[0].shape().size())};
  Arrays turned;
  turned.reserve(operands.size());
  for (const Array& x : operands) turned.push_back(primitive::reverse(x, along));
  return primitive::reverse(primitive::sort(turned, dim)[result], along);
}
static Array sorted_array(const char* function, const Array& x, const SortOptions& o, bool positions) {
  const Array y = o.axis ? x : primitive::reshape(x, {num_elements(type_of(x, function).shape)});
  const std::size_t dim = api::axis_of(function, o.axis.value_or(0), type_of(y, function).shape);
  if (!positions) return sorted_by_first({&y, 1}, dim, o.descending, 0);
  const Array operands[] = {y, primitive::iota(y.shape(), dim, DType::int32)};
  return sorted_by_first(operands, dim, o.descending, 1);
}
Array sort_fn::operator()(const Array& x, const SortOptions& o, Where w) const {
  const Site site(w, "sort");
  return sorted_array("sort", x, o, false);
}
std::vector<Array> sort_fn::operator()(const std::vector<Array>& operands, const SortOperandsOptions& o,
                                       Where w) const {
  const Site site(w, "sort");
  if (operands.empty()) throw ShapeError("sort: no operands. The first one is a key. Give at least one.");
  const Shape& shape = type_of(operands[0], "sort").shape;
  for (const Array& x : operands)
    if (!(type_of(x, "sort").shape == shape))
      throw ShapeError(fmt::format("sort: shapes {} and {}. All operands have one shape. Broadcast one.",
                                   to_string(shape), to_string(x.shape())));
  if (o.num_keys < 1 || o.num_keys > std::ssize(operands))
    throw Error(
        fmt::format("sort: {} of {}. There is one at least, and no more than operands. Change num_keys.",
                    count_text(o.num_keys, "key"), count_text(operands.size(), "operand")));
  const std::size_t dim = api::axis_of("sort", o.axis, shape);
  if (o.num_keys == 1) {
    const Arrays sorted = primitive::sort(operands, dim);
    return {sorted.begin(), sorted.end()};
  }
  std::vector<Array> keys(operands.begin(), operands.begin() + o.num_keys);
  std::reverse(keys.begin(), keys.end());  // lexsort's primary key is the last
  const Array order = lexsort(keys, static_cast<std::int64_t>(dim));
  std::vector<Array> sorted;
  sorted.reserve(operands.size());
  for (const Array& x : operands) sorted.push_back(primitive::take_along(x, order, dim));
  return sorted;
}
Array argsort_fn::operator()(const Array& x, const SortOptions& o, Where w) const {
  const Site site(w, "argsort");
  return sorted_array("argsort", x, o, true);
}

}  // namespace shardarray
