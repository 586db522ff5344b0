// Activations. Integers become floating; 16-bit floats are computed in float32 and rounded once.
#include <fmt/core.h>

#include <numbers>

#include "ops/function.h"
#include "ops/rules.h"
#include "shardarray/activations.h"

namespace shardarray {

using namespace rules;

namespace {

/// For those that JAX writes with float literals: integers keep their weakness.
WeakType beside_float(WeakType t) { return promote_types(t, {DType::float32, true}); }
template <Array (*f)(const Array&)> Array pieced(const char* function, const Array& x) {
  return api::rounded_once(beside_float(api::weak_type_of(x, function)), f, x);
}
/// f(x, parameter) of type t, broadcast.
template <class F>
Array with_parameter(const char* function, const Array& x, const Array& parameter, WeakType t, const F& f) {
  const Arrays v = api::together(function, {&x, &parameter}, t);
  return api::rounded_once(t, f, v[0], v[1]);
}
WeakType float_of_both(const char* function, const Array& x, const Array& parameter) {
  return beside_float(api::promoted(function, {&x, &parameter}));
}

Array log_of_sum(const Array& x, double other) {
  return primitive::binary(op_logaddexp, x, primitive::like(x, other));
}
Array softplus_of(const Array& x) { return log_of_sum(x, 0); }
Array log_sigmoid_of(const Array& x) { return -log_of_sum(-x, 0); }
Array mish_of(const Array& x) { return x * primitive::unary(op_tanh, softplus_of(x)); }
Array soft_sign_of(const Array& x) { return x / (primitive::unary(op_abs, x) + 1); }

/// The gradient is 1 inside, 0 at both ends.
Array relu6_of(const Array& x) {
  const Array clipped =
      primitive::binary(op_min, primitive::binary(op_max, x, primitive::like(x, 0)), primitive::like(x, 6));
  return primitive::select((x > 0) & (x < 6), x, primitive::unary(op_stop_gradient, clipped));
}
Array hard_sigmoid_of(const Array& x) { return relu6_of(x + 3) / 6; }
Array hard_silu_of(const Array& x) { return x * hard_sigmoid_of(x); }
/// x above 0, else alpha expm1(x / width); expm1 is taken of values <= 0 only, so that the branch not taken stays finite.
Array elu_of_width(const Array& x, const Array& alpha, const Array* width) {
  const Array above = x > 0, below = primitive::select(above, primitive::like(x, 0), x);
  const Array exponent = width != nullptr ? below / *width : below;
  return primitive::select(above, x, alpha * primitive::unary(op_expm1, exponent));
}
Array elu_of(const Array& x, const Array& alpha) { return elu_of_width(x, alpha, nullptr); }
Array celu_of(const Array& x, const Array& alpha) { return elu_of_width(x, alpha, &alpha); }
/// Klambauer, Unterthiner, Mayr, Hochreiter, "Self-Normalizing Neural Networks" (2017).
Array selu_of(const Array& x) {
  constexpr double scale = 1.0507009873554804934, alpha = 1.6732632423543772848;
  return elu_of(x, primitive::like(x, alpha)) * scale;
}

}  // namespace

template <> constexpr UnaryBody unary_body<"softplus"> = rounded<softplus_of>;
template SHARDARRAY_API Array UnaryFunction<"softplus">::operator()(const Array&, Where) const;
template <> constexpr UnaryBody unary_body<"log_sigmoid"> = rounded<log_sigmoid_of>;
template SHARDARRAY_API Array UnaryFunction<"log_sigmoid">::operator()(const Array&, Where) const;
template <> constexpr UnaryBody unary_body<"mish"> = rounded<mish_of>;
template SHARDARRAY_API Array UnaryFunction<"mish">::operator()(const Array&, Where) const;
template <> constexpr UnaryBody unary_body<"soft_sign"> = rounded<soft_sign_of>;
template SHARDARRAY_API Array UnaryFunction<"soft_sign">::operator()(const Array&, Where) const;
template <> constexpr UnaryBody unary_body<"relu6"> = pieced<relu6_of>;
template SHARDARRAY_API Array UnaryFunction<"relu6">::operator()(const Array&, Where) const;
template <> constexpr UnaryBody unary_body<"hard_sigmoid"> = pieced<hard_sigmoid_of>;
template SHARDARRAY_API Array UnaryFunction<"hard_sigmoid">::operator()(const Array&, Where) const;
template <> constexpr UnaryBody unary_body<"hard_silu"> = pieced<hard_silu_of>;
template SHARDARRAY_API Array UnaryFunction<"hard_silu">::operator()(const Array&, Where) const;
template <> constexpr UnaryBody unary_body<"selu"> = pieced<selu_of>;
template SHARDARRAY_API Array UnaryFunction<"selu">::operator()(const Array&, Where) const;
// Integers stay integers.
template <>
constexpr UnaryBody unary_body<"hard_tanh"> = [](const char* function, const Array& x) {
  const WeakType t = api::counted(api::weak_type_of(x, function));
  const Array y = api::cast(x, t), one = primitive::like_whole(y, 1);
  const Array upper = primitive::select(primitive::binary(op_gt, y, one), one, y);
  if (is_unsigned_integer(t.dtype)) return upper;
  const Array low = primitive::like_whole(y, -1);
  return primitive::select(primitive::binary(op_lt, y, low), low, upper);
};
template SHARDARRAY_API Array UnaryFunction<"hard_tanh">::operator()(const Array&, Where) const;

Array elu_fn::operator()(const Array& x, const Array& alpha, Where w) const {
  const Site site(w, "elu");
  return with_parameter("elu", x, alpha, float_of_both("elu", x, alpha), elu_of);
}
Array celu_fn::operator()(const Array& x, const Array& alpha, Where w) const {
  const Site site(w, "celu");
  return with_parameter("celu", x, alpha, float_of_both("celu", x, alpha), celu_of);
}
Array leaky_relu_fn::operator()(const Array& x, const Array& slope, Where w) const {
  const Site site(w, "leaky_relu");
  return with_parameter("leaky_relu", x, slope, api::counted(api::promoted("leaky_relu", {&x, &slope})),
                        [](const Array& y, const Array& s) { return primitive::select(y >= 0, y, y * s); });
}
Array squareplus_fn::operator()(const Array& x, const Array& b, Where w) const {
  const Site site(w, "squareplus");
  return with_parameter(
      "squareplus", x, b, float_of_both("squareplus", x, b),
      [](const Array& y, const Array& c) { return (y + primitive::unary(op_sqrt, y * y + c)) * 0.5; });
}

Array glu_fn::operator()(const Array& x, std::int64_t axis, Where w) const {
  const Site site(w, "glu");
  const WeakType t = api::to_inexact(api::weak_type_of(x, "glu"));
  const std::size_t dim = api::axis_of("glu", axis, x.shape());
  const std::int64_t size = x.shape()[dim];
  if (size % 2 != 0)
    throw ShapeError(
        fmt::format("glu: axis {} of shape {} has size {}. One half gates the other: the size is even. "
                    "Choose another axis.",
                    axis, to_string(x.shape()), size));
  const auto gated = [&](const Array& y) {
    return primitive::slice_dim(y, dim, 0, size / 2) *
           primitive::unary(op_logistic, primitive::slice_dim(y, dim, size / 2, size));
  };
  return api::rounded_once(t, gated, x);
}
Array standardize_fn::operator()(const Array& x, const StandardizeOptions& o, Where w) const {
  const Site site(w, "standardize");
  const WeakType t = api::to_inexact(api::weak_type_of(x, "standardize"));
  const auto standardized = [&](const Array& y) {
    const ReduceOptions along{.axis = o.axis, .keepdims = true, .where = o.where};
    const Array centred = y - y.mean(along);
    return centred * primitive::unary(op_rsqrt, (centred * centred).mean(along) + o.epsilon);
  };
  return api::rounded_once({t.dtype, false}, standardized, x);
}

}  // namespace shardarray
