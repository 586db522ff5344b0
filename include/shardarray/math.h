// Elementwise functions: numpy's names, JAX's types.
//
// Operands are broadcast to one shape and promoted to one dtype (see promote_types); numbers are weak and take the other
// operand's dtype. "Floating" functions give float32 for bool and integers (float64 for 64-bit ones). All throw ShapeError
// when shapes cannot be broadcast. They are function objects, so that they can be passed to vmap and jit.
#pragma once
#include "shardarray/array.h"
#include "shardarray/detail/function.h"

namespace shardarray {

// ---------------------------------------------------------------- arithmetic
/// a + b; of bools: or.
inline constexpr BinaryFunction<"add"> add{};
/// a - b. Throws DTypeError for two bools.
inline constexpr BinaryFunction<"subtract"> subtract{};
/// a * b; of bools: and.
inline constexpr BinaryFunction<"multiply"> multiply{};
/// a / b, floating.
inline constexpr BinaryFunction<"divide"> divide{};
inline constexpr BinaryFunction<"divide"> true_divide{};
/// The largest integer <= a / b. 16-bit floats are divided in float32. Integers: a / 0 is -1. Throws DTypeError for complex operands.
inline constexpr BinaryFunction<"floor_divide"> floor_divide{};
/// a - floor(a / b) * b: the sign of b. Integers: a % 0 is a. Throws DTypeError for complex operands.
inline constexpr BinaryFunction<"remainder"> remainder{};
/// a to the power b. An integer literal b multiplies repeatedly; of bools: int32.
/// Throws DTypeError for an integer to a negative literal power.
inline constexpr BinaryFunction<"power"> power{};
/// The larger one; NaN when one is. Of bools: or. Ties share the gradient.
inline constexpr BinaryFunction<"maximum"> maximum{};
/// The smaller one; NaN when one is. Of bools: and.
inline constexpr BinaryFunction<"minimum"> minimum{};
/// a * b + c, rounded once; floating.
inline constexpr struct SHARDARRAY_API fma_fn {
  Array operator()(const Array& a, const Array& b, const Array& c, Where w = Where::here()) const;
} fma{};
/// -x. Throws DTypeError for bool.
inline constexpr UnaryFunction<"negative"> negative{};
inline constexpr UnaryFunction<"abs"> abs{};
/// -1, 0 or 1; NaN of NaN. Throws DTypeError for bool.
inline constexpr UnaryFunction<"sign"> sign{};
/// x * x; of bool: int32.
inline constexpr UnaryFunction<"square"> square{};
/// 1 / x, floating.
inline constexpr UnaryFunction<"reciprocal"> reciprocal{};
/// Rounding to whole numbers; integers stay as they are.
inline constexpr UnaryFunction<"floor"> floor{};
inline constexpr UnaryFunction<"ceil"> ceil{};
inline constexpr UnaryFunction<"trunc"> trunc{};
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
inline constexpr UnaryFunction<"exp"> exp{};
inline constexpr UnaryFunction<"expm1"> expm1{};
inline constexpr UnaryFunction<"log"> log{};
inline constexpr UnaryFunction<"log1p"> log1p{};
inline constexpr UnaryFunction<"sqrt"> sqrt{};
/// 1 / sqrt(x).
inline constexpr UnaryFunction<"rsqrt"> rsqrt{};
inline constexpr UnaryFunction<"sin"> sin{};
inline constexpr UnaryFunction<"cos"> cos{};
inline constexpr UnaryFunction<"tan"> tan{};
inline constexpr UnaryFunction<"sinh"> sinh{};
inline constexpr UnaryFunction<"cosh"> cosh{};
inline constexpr UnaryFunction<"tanh"> tanh{};
inline constexpr UnaryFunction<"arcsin"> arcsin{};
inline constexpr UnaryFunction<"arccos"> arccos{};
inline constexpr UnaryFunction<"arctan"> arctan{};
/// The angle of the point (x, y) in [-pi, pi].
inline constexpr BinaryFunction<"arctan2"> arctan2{};
inline constexpr UnaryFunction<"arcsin"> asin{};
inline constexpr UnaryFunction<"arccos"> acos{};
inline constexpr UnaryFunction<"arctan"> atan{};
inline constexpr BinaryFunction<"arctan2"> atan2{};
/// sin(pi x) / (pi x); 1 at 0.
inline constexpr UnaryFunction<"sinc"> sinc{};
inline constexpr UnaryFunction<"erf"> erf{};
/// 1 - erf(x), with all digits where that is small.
inline constexpr UnaryFunction<"erfc"> erfc{};
inline constexpr UnaryFunction<"erf_inv"> erf_inv{};
/// 1 / (1 + exp(-x)).
inline constexpr UnaryFunction<"sigmoid"> sigmoid{};
/// max(x, 0), keeping integers; gradient 0 at 0.
inline constexpr UnaryFunction<"relu"> relu{};
/// x * sigmoid(x).
inline constexpr UnaryFunction<"silu"> silu{};
/// x * Phi(x), Phi the normal distribution function; the negative tail by erfc; approximate: the tanh form of
/// Hendrycks and Gimpel.
inline constexpr struct SHARDARRAY_API gelu_fn {
  Array operator()(const Array& x, bool approximate = true, Where w = Where::here()) const;
} gelu{};

// ---------------------------------------------------------------- comparisons and logic: bool
inline constexpr BinaryFunction<"equal"> equal{};
inline constexpr BinaryFunction<"not_equal"> not_equal{};
inline constexpr BinaryFunction<"less"> less{};
inline constexpr BinaryFunction<"less_equal"> less_equal{};
inline constexpr BinaryFunction<"greater"> greater{};
inline constexpr BinaryFunction<"greater_equal"> greater_equal{};
inline constexpr UnaryFunction<"isnan"> isnan{};
inline constexpr UnaryFunction<"isinf"> isinf{};
inline constexpr UnaryFunction<"isfinite"> isfinite{};
/// Operands that are not bool count as "not zero".
inline constexpr BinaryFunction<"logical_and"> logical_and{};
inline constexpr BinaryFunction<"logical_or"> logical_or{};
inline constexpr BinaryFunction<"logical_xor"> logical_xor{};
inline constexpr UnaryFunction<"logical_not"> logical_not{};

// ---------------------------------------------------------------- bits: integers and bool, else DTypeError
inline constexpr BinaryFunction<"bitwise_and"> bitwise_and{};
inline constexpr BinaryFunction<"bitwise_or"> bitwise_or{};
inline constexpr BinaryFunction<"bitwise_xor"> bitwise_xor{};
inline constexpr UnaryFunction<"bitwise_not"> bitwise_not{};
/// Amounts beyond the width give 0.
inline constexpr BinaryFunction<"left_shift"> left_shift{};
/// Arithmetic on signed integers: the sign stays.
inline constexpr BinaryFunction<"right_shift"> right_shift{};

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
