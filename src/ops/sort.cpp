// sort, argsort.
#include <fmt/core.h>

#include "ops/api.h"
#include "ops/rules.h"
#include "shardarray/ops.h"

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

// The permutation comes from sorting the positions too.
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
  LocalCall c{.name = "sort",
              .in_shapes = {},
              .out_shapes = {},
              .params = {l.call.attrs->dims[0] + std::ssize(l.call.in[0].shape)}};
  for (const Box& b : l.in) c.in_shapes.push_back(b.size);
  c.out_shapes = c.in_shapes;
  return c;
}

// All operands along attrs.dims[0], by the first, stable.
SHARDARRAY_OP op_sort{.name = "sort",
                      .form = Form::library,
                      .rule = sort_rule,
                      .type = sort_type,
                      .jvp = sort_jvp,
                      .lower = sort_call};

Array sort_fn::operator()(const Array& x, std::int64_t axis, Where w) const {
  const Site site(w, "sort");
  const std::size_t dim = api::axis_of("sort", axis, type_of(x, "sort").shape);
  return primitive::sort({&x, 1}, dim)[0];
}
Array argsort_fn::operator()(const Array& x, std::int64_t axis, Where w) const {
  const Site site(w, "argsort");
  const std::size_t dim = api::axis_of("argsort", axis, type_of(x, "argsort").shape);
  const Array operands[] = {x, primitive::iota(x.shape(), dim, DType::int32)};
  return primitive::sort(operands, dim)[1];
}

}  // namespace shardarray
