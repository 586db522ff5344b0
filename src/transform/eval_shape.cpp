// eval_shape's erased core, and arrays without values.
#include "shardarray/eval_shape.h"

#include "graph/trace_state.h"
#include "transform/trace.h"
#include "transform/without_value.h"

namespace shardarray {

static constinit const Op op_without_value{
    .name = "shape_dtype_struct", .form = Form::leaf, .rule = pointwise_rule, .trait = Trait::without_value};

Array without_value(const Type& t, Where w) {
  check_type(t, "shape_dtype_struct");
  return Array(Node::make<const Array>(&op_without_value, {}, {&t, 1}, nullptr, w), 0);
}

Array shape_dtype_struct(const Shape& shape, DType dtype, Where w) {
  const Site site(w, "shape_dtype_struct");
  return without_value({shape, dtype, false}, w);
}

core::Arrays core::eval_shape(MapBody f, std::span<const Array> arguments, Where w) {
  const Site site(w, "eval_shape");
  std::vector<Type> types;
  for (const Array& a : arguments) types.push_back(type_of(a, "eval_shape"));
  Arrays captured, out;
  const auto body = [&](std::span<const Array> placeholders) {
    out = f(placeholders);
    return Arrays();
  };
  traced(body, types, captured, "eval_shape");
  for (Array& a : out)
    if (a.has_value()) a = without_value(type_of(a), w);
  return out;
}

}  // namespace shardarray
