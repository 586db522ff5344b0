// Activations in addition to relu, sigmoid, silu and gelu of math.h, with the names, types and gradients of jax.nn.
//
// Elementwise, as in math.h, with the same exceptions; integers and bool become float32 (float64 for 64-bit ones) unless stated
// otherwise; 16-bit floats are computed in float32 and rounded once. Parameters are numbers or arrays, which are broadcast and
// differentiable.
#pragma once
#include "shardarray/math.h"

namespace shardarray {

/// log(1 + exp(x)) without overflow.
inline constexpr UnaryFunction<"softplus"> softplus{};
/// log(sigmoid(x)) = -softplus(-x).
inline constexpr UnaryFunction<"log_sigmoid"> log_sigmoid{};
/// x / (1 + |x|); NaN at infinities, as in JAX.
inline constexpr UnaryFunction<"soft_sign"> soft_sign{};
/// x * tanh(softplus(x)); NaN at -inf, as in JAX.
inline constexpr UnaryFunction<"mish"> mish{};
/// min(max(x, 0), 6); gradient 0 at both ends.
inline constexpr UnaryFunction<"relu6"> relu6{};
/// x where x > 0, else alpha * (exp(x) - 1).
inline constexpr struct SHARDARRAY_API elu_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& alpha = 1.0, Where w = Where::here()) const;
} elu{};
/// 1.0507... * elu(x, 1.6733...): preserves mean 0 and variance 1 (Klambauer et al., 2017).
inline constexpr UnaryFunction<"selu"> selu{};
/// x where x > 0, else alpha * (exp(x / alpha) - 1).
inline constexpr struct SHARDARRAY_API celu_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& alpha = 1.0, Where w = Where::here()) const;
} celu{};
/// x where x >= 0, else slope * x; gradient 1 at 0. Integers with an integer slope stay integers.
inline constexpr struct SHARDARRAY_API leaky_relu_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& slope = 0.01, Where w = Where::here()) const;
} leaky_relu{};
/// x clamped to [-1, 1], with gradient 0 outside. Integers stay integers, bool gives int32.
inline constexpr UnaryFunction<"hard_tanh"> hard_tanh{};
/// relu6(x + 3) / 6.
inline constexpr UnaryFunction<"hard_sigmoid"> hard_sigmoid{};
/// x * hard_sigmoid(x). Also called hard_swish.
inline constexpr UnaryFunction<"hard_silu"> hard_silu{};
inline constexpr UnaryFunction<"hard_silu"> hard_swish{};
/// (x + sqrt(x^2 + b)) / 2; NaN at -inf, as in JAX.
inline constexpr struct SHARDARRAY_API squareplus_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& b = 4.0, Where w = Where::here()) const;
} squareplus{};
/// The first half along an axis times the sigmoid of the second. Throws ShapeError for an odd size.
inline constexpr struct SHARDARRAY_API glu_fn {
  [[nodiscard]] Array operator()(const Array& x, std::int64_t axis = -1, Where w = Where::here()) const;
} glu{};
/// Options of standardize: `standardize(x, {.where = mask})`.
struct StandardizeOptions {
  AxisSet axis = -1;      ///< the axes to normalise over
  MaskOption where = {};  ///< bools as in ReduceOptions: elements used for mean and variance
  double epsilon = 1e-5;
};
/// (x - mean) / sqrt(variance + epsilon) along the axes; strong.
inline constexpr struct SHARDARRAY_API standardize_fn {
  [[nodiscard]] Array operator()(const Array& x, const StandardizeOptions& o = {},
                                 Where w = Where::here()) const;
  template <std::convertible_to<AxisSet> A>
  [[nodiscard]] Array operator()(const Array& x, const A& axes, double epsilon = 1e-5,
                                 Where w = Where::here()) const {
    return (*this)(x, StandardizeOptions{.axis = axes, .epsilon = epsilon}, w);
  }
  template <detail::AxisNumber I>
  [[nodiscard]] Array operator()(const Array& x, std::initializer_list<I> axes, double epsilon = 1e-5,
                                 Where w = Where::here()) const {
    return (*this)(x, StandardizeOptions{.axis = detail::over(axes).axis, .epsilon = epsilon}, w);
  }
} standardize{};

}  // namespace shardarray
