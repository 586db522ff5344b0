// Elementwise functions: numpy's names, JAX's types.
//
// Operands are broadcast to one shape and promoted to one dtype (see promote_types); numbers are weak and take the other
// operand's dtype. "Floating" functions give float32 for bool and integers (float64 for 64-bit ones). All throw ShapeError
// when shapes cannot be broadcast. They are function objects, so that they can be passed to vmap and jit.
#pragma once
#include "shardarray/array.h"

namespace shardarray {

// ---------------------------------------------------------------- arithmetic
/// a + b; of bools: or.
inline constexpr struct SHARDARRAY_API add_fn {
  Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} add{};
/// a - b. Throws DTypeError for two bools.
inline constexpr struct SHARDARRAY_API subtract_fn {
  Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} subtract{};
/// a * b; of bools: and.
inline constexpr struct SHARDARRAY_API multiply_fn {
  Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} multiply{};
/// a / b, floating.
inline constexpr struct SHARDARRAY_API divide_fn {
  Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} divide{};
inline constexpr divide_fn true_divide{};
/// The largest integer <= a / b. 16-bit floats are divided in float32. Integers: a / 0 is -1. Throws DTypeError for complex operands.
inline constexpr struct SHARDARRAY_API floor_divide_fn {
  Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} floor_divide{};
/// a - floor(a / b) * b: the sign of b. Integers: a % 0 is a. Throws DTypeError for complex operands.
inline constexpr struct SHARDARRAY_API remainder_fn {
  Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} remainder{};
/// a to the power b. An integer literal b multiplies repeatedly; of bools: int32.
/// Throws DTypeError for an integer to a negative literal power.
inline constexpr struct SHARDARRAY_API power_fn {
  Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} power{};
/// The larger one; NaN when one is. Of bools: or. Ties share the gradient.
inline constexpr struct SHARDARRAY_API maximum_fn {
  Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} maximum{};
/// The smaller one; NaN when one is. Of bools: and.
inline constexpr struct SHARDARRAY_API minimum_fn {
  Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} minimum{};
/// a * b + c, rounded once; floating.
inline constexpr struct SHARDARRAY_API fma_fn {
  Array operator()(const Array& a, const Array& b, const Array& c, Where w = Where::here()) const;
} fma{};
/// -x. Throws DTypeError for bool.
inline constexpr struct SHARDARRAY_API negative_fn {
  Array operator()(const Array& x, Where w = Where::here()) const;
} negative{};
inline constexpr struct SHARDARRAY_API abs_fn {
  Array operator()(const Array& x, Where w = Where::here()) const;
} abs{};
/// -1, 0 or 1; NaN of NaN. Throws DTypeError for bool.
inline constexpr struct SHARDARRAY_API sign_fn {
  Array operator()(const Array& x, Where w = Where::here()) const;
} sign{};
/// x * x; of bool: int32.
inline constexpr struct SHARDARRAY_API square_fn {
  Array operator()(const Array& x, Where w = Where::here()) const;
} square{};
/// 1 / x, floating.
inline constexpr struct SHARDARRAY_API reciprocal_fn {
  Array operator()(const Array& x, Where w = Where::here()) const;
} reciprocal{};
/// Rounding to whole numbers; integers stay as they are.
inline constexpr struct SHARDARRAY_API floor_fn {
  Array operator()(const Array& x, Where w = Where::here()) const;
} floor{};
inline constexpr struct SHARDARRAY_API ceil_fn {
  Array operator()(const Array& x, Where w = Where::here()) const;
} ceil{};
inline constexpr struct SHARDARRAY_API trunc_fn {
  Array operator()(const Array& x, Where w = Where::here()) const;
} trunc{};
/// To `decimals` decimals, halves to even; integers stay as they are. Throws DTypeError for bool.
inline constexpr struct SHARDARRAY_API round_fn {
  Array operator()(const Array& x, int decimals = 0, Where w = Where::here()) const;
} round{};
/// min(max(x, lo), hi).
inline constexpr struct SHARDARRAY_API clip_fn {
  Array operator()(const Array& x, const Array& lo, const Array& hi, Where w = Where::here()) const;
} clip{};
/// clip in the order and with the dtype of lax.clamp: that of x.
inline constexpr struct SHARDARRAY_API clamp_fn {
  Array operator()(const Array& lo, const Array& x, const Array& hi, Where w = Where::here()) const;
} clamp{};

// ---------------------------------------------------------------- floating functions
inline constexpr struct SHARDARRAY_API exp_fn {
  Array operator()(const Array& x, Where w = Where::here()) const;
} exp{};
inline constexpr struct SHARDARRAY_API expm1_fn {
  Array operator()(const Array& x, Where w = Where::here()) const;
} expm1{};
inline constexpr struct SHARDARRAY_API log_fn {
  Array operator()(const Array& x, Where w = Where::here()) const;
} log{};
inline constexpr struct SHARDARRAY_API log1p_fn {
  Array operator()(const Array& x, Where w = Where::here()) const;
} log1p{};
inline constexpr struct SHARDARRAY_API sqrt_fn {
  Array operator()(const Array& x, Where w = Where::here()) const;
} sqrt{};
/// 1 / sqrt(x).
inline constexpr struct SHARDARRAY_API rsqrt_fn {
  Array operator()(const Array& x, Where w = Where::here()) const;
} rsqrt{};
inline constexpr struct SHARDARRAY_API sin_fn {
  Array operator()(const Array& x, Where w = Where::here()) const;
} sin{};
inline constexpr struct SHARDARRAY_API cos_fn {
  Array operator()(const Array& x, Where w = Where::here()) const;
} cos{};
inline constexpr struct SHARDARRAY_API tan_fn {
  Array operator()(const Array& x, Where w = Where::here()) const;
} tan{};
inline constexpr struct SHARDARRAY_API sinh_fn {
  Array operator()(const Array& x, Where w = Where::here()) const;
} sinh{};
inline constexpr struct SHARDARRAY_API cosh_fn {
  Array operator()(const Array& x, Where w = Where::here()) const;
} cosh{};
inline constexpr struct SHARDARRAY_API tanh_fn {
  Array operator()(const Array& x, Where w = Where::here()) const;
} tanh{};
inline constexpr struct SHARDARRAY_API arcsin_fn {
  Array operator()(const Array& x, Where w = Where::here()) const;
} arcsin{};
inline constexpr struct SHARDARRAY_API arccos_fn {
  Array operator()(const Array& x, Where w = Where::here()) const;
} arccos{};
inline constexpr struct SHARDARRAY_API arctan_fn {
  Array operator()(const Array& x, Where w = Where::here()) const;
} arctan{};
/// The angle of the point (x, y) in [-pi, pi].
inline constexpr struct SHARDARRAY_API arctan2_fn {
  Array operator()(const Array& y, const Array& x, Where w = Where::here()) const;
} arctan2{};
inline constexpr arcsin_fn asin{};
inline constexpr arccos_fn acos{};
inline constexpr arctan_fn atan{};
inline constexpr arctan2_fn atan2{};
inline constexpr struct SHARDARRAY_API erf_fn {
  Array operator()(const Array& x, Where w = Where::here()) const;
} erf{};
/// 1 - erf(x), with all digits where that is small.
inline constexpr struct SHARDARRAY_API erfc_fn {
  Array operator()(const Array& x, Where w = Where::here()) const;
} erfc{};
inline constexpr struct SHARDARRAY_API erf_inv_fn {
  Array operator()(const Array& x, Where w = Where::here()) const;
} erf_inv{};
/// 1 / (1 + exp(-x)).
inline constexpr struct SHARDARRAY_API sigmoid_fn {
  Array operator()(const Array& x, Where w = Where::here()) const;
} sigmoid{};
/// max(x, 0), keeping integers; gradient 0 at 0.
inline constexpr struct SHARDARRAY_API relu_fn {
  Array operator()(const Array& x, Where w = Where::here()) const;
} relu{};
/// x * sigmoid(x).
inline constexpr struct SHARDARRAY_API silu_fn {
  Array operator()(const Array& x, Where w = Where::here()) const;
} silu{};
/// x * Phi(x), Phi the normal distribution function; the negative tail by erfc; approximate: the tanh form of
/// Hendrycks and Gimpel.
inline constexpr struct SHARDARRAY_API gelu_fn {
  Array operator()(const Array& x, bool approximate = true, Where w = Where::here()) const;
} gelu{};

// ---------------------------------------------------------------- comparisons and logic: bool
inline constexpr struct SHARDARRAY_API equal_fn {
  Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} equal{};
inline constexpr struct SHARDARRAY_API not_equal_fn {
  Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} not_equal{};
inline constexpr struct SHARDARRAY_API less_fn {
  Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} less{};
inline constexpr struct SHARDARRAY_API less_equal_fn {
  Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} less_equal{};
inline constexpr struct SHARDARRAY_API greater_fn {
  Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} greater{};
inline constexpr struct SHARDARRAY_API greater_equal_fn {
  Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} greater_equal{};
inline constexpr struct SHARDARRAY_API isnan_fn {
  Array operator()(const Array& x, Where w = Where::here()) const;
} isnan{};
inline constexpr struct SHARDARRAY_API isinf_fn {
  Array operator()(const Array& x, Where w = Where::here()) const;
} isinf{};
inline constexpr struct SHARDARRAY_API isfinite_fn {
  Array operator()(const Array& x, Where w = Where::here()) const;
} isfinite{};
/// Operands that are not bool count as "not zero".
inline constexpr struct SHARDARRAY_API logical_and_fn {
  Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} logical_and{};
inline constexpr struct SHARDARRAY_API logical_or_fn {
  Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} logical_or{};
inline constexpr struct SHARDARRAY_API logical_xor_fn {
  Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} logical_xor{};
inline constexpr struct SHARDARRAY_API logical_not_fn {
  Array operator()(const Array& x, Where w = Where::here()) const;
} logical_not{};

// ---------------------------------------------------------------- bits: integers and bool, else DTypeError
inline constexpr struct SHARDARRAY_API bitwise_and_fn {
  Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} bitwise_and{};
inline constexpr struct SHARDARRAY_API bitwise_or_fn {
  Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} bitwise_or{};
inline constexpr struct SHARDARRAY_API bitwise_xor_fn {
  Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} bitwise_xor{};
inline constexpr struct SHARDARRAY_API bitwise_not_fn {
  Array operator()(const Array& x, Where w = Where::here()) const;
} bitwise_not{};
/// Amounts beyond the width give 0.
inline constexpr struct SHARDARRAY_API left_shift_fn {
  Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} left_shift{};
/// Arithmetic on signed integers: the sign stays.
inline constexpr struct SHARDARRAY_API right_shift_fn {
  Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} right_shift{};

// ---------------------------------------------------------------- selection and types
/// a where condition (not zero), else b.
inline constexpr struct SHARDARRAY_API where_fn {
  Array operator()(const Array& condition, const Array& a, const Array& b, Where w = Where::here()) const;
} where{};
/// The values as another dtype: floats to integers truncate and saturate, to bool is "not zero".
inline constexpr struct SHARDARRAY_API astype_fn {
  Array operator()(const Array& x, DType t, Where w = Where::here()) const;
} astype{};
/// The bits as another dtype of the same width (else DTypeError).
inline constexpr struct SHARDARRAY_API bitcast_fn {
  Array operator()(const Array& x, DType t, Where w = Where::here()) const;
} bitcast{};
/// x as a constant for derivatives.
SHARDARRAY_API Array stop_gradient(const Array& x, Where w = Where::here());

}  // namespace shardarray
