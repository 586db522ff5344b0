// Elementwise functions: NumPy's names, JAX's types.
//
// Operands are broadcast to one shape, as in NumPy, and promoted to one dtype (see promote_types), which is the result's unless stated
// otherwise; numbers are weak and adopt the other operand's dtype. "Floating" functions return float32 for bool and integers (float64 for
// 64-bit ones). Integers wrap.
//
// All throw ShapeError if shapes cannot be broadcast, DTypeError for an integer literal that the dtype it adopts cannot represent
// (`uint8 + 300`), Error for an absent array, DonationError for a donated one. All can be passed to vmap and jit: they are function
// objects or, where C has the name too (abs, exp, sin, ...), functions, which coexist with C's under `using namespace shardarray`: abs(x)
// of an array is this library's, abs(2) is C's. Messages and explain() show the caller's line: `w`, or that of the first operand.
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "shardarray/array.h"
#include "shardarray/detail/function.h"

namespace shardarray {

// ---------------------------------------------------------------- arithmetic
/// a + b; for bools: or.
inline constexpr BinaryFunction<"add"> add{};
/// a - b. Throws DTypeError for two bools.
inline constexpr BinaryFunction<"subtract"> subtract{};
/// a * b; for bools: and.
inline constexpr BinaryFunction<"multiply"> multiply{};
/// a / b, floating, also for integers: 1 / 2 is 0.5. Division by 0 gives an infinity or NaN. Also called true_divide. For complex
/// numbers, a finite number divided by one with an infinite part is 0, as in C and JAX; but NaN parts take precedence over infinite ones,
/// and an infinite number divided by one with a zero part may be NaN in both parts, where C and JAX give an infinity.
inline constexpr BinaryFunction<"divide"> divide{};
inline constexpr BinaryFunction<"divide"> true_divide{};
/// The largest integer <= a / b; integers stay integers, bools give int32. 16-bit floats are divided in float32. For integers a / 0 is -1
/// (unsigned: the largest number), as in lax.div, where jnp.floor_divide gives -2 and NumPy 0; for floats an infinity or NaN.
inline constexpr BinaryFunction<"floor_divide"> floor_divide{};
/// a - floor(a / b) * b, with the sign of b; integers stay integers, bools give int32. For integers a % 0 is a, as in lax.rem, where
/// jnp.remainder and NumPy give 0; for floats NaN.
[[nodiscard]] SHARDARRAY_API Array remainder(const Operand& a, const Operand& b);
/// floor_divide and remainder, in this order.
inline constexpr struct SHARDARRAY_API divmod_fn {
  [[nodiscard]] std::pair<Array, Array> operator()(const Array& a, const Array& b,
                                                   Where w = Where::here()) const;
} divmod{};
/// a - trunc(a / b) * b, with the sign of a; integers stay integers, bools give int32. For integers and b = 0 it is a, as in lax.rem,
/// where jnp.fmod and NumPy give 0; for floats NaN. Also called rem.
[[nodiscard]] SHARDARRAY_API Array fmod(const Operand& a, const Operand& b);
inline constexpr BinaryFunction<"fmod"> rem{};
/// Greatest common divisor (non-negative) and least common multiple: integers only, else DTypeError. gcd(0, 0) and lcm(x, 0) are 0;
/// overflow wraps. gcd always performs as many divisions as the width may need.
inline constexpr BinaryFunction<"gcd"> gcd{};
inline constexpr BinaryFunction<"lcm"> lcm{};
/// a to the power b. An integer literal b multiplies repeatedly and keeps the dtype of a (bools give int32). For an integer array b only
/// the low 6 bits count, as in JAX: negative ones give meaningless results. 0 to the power 0 is 1. Throws DTypeError for an integer to a
/// negative literal power. Also called pow.
inline constexpr BinaryFunction<"power"> power{};
[[nodiscard]] SHARDARRAY_API Array pow(const Operand& a, const Operand& b);
/// a to the power b, floating: also for negative integer exponents.
inline constexpr BinaryFunction<"float_power"> float_power{};
/// The larger operand; NaN if either is. For bools: or. Ties share the gradient.
inline constexpr BinaryFunction<"maximum"> maximum{};
/// The smaller operand; NaN if either is. For bools: and.
inline constexpr BinaryFunction<"minimum"> minimum{};
/// The larger (smaller) operand, ignoring NaN; in ties b has the gradient.
[[nodiscard]] SHARDARRAY_API Array fmax(const Operand& a, const Operand& b);
[[nodiscard]] SHARDARRAY_API Array fmin(const Operand& a, const Operand& b);
/// a * b + c, rounded once; floating.
[[nodiscard]] SHARDARRAY_API Array fma(const Operand& a, const Operand& b, const Operand& c);
/// Returns x.
inline constexpr UnaryFunction<"positive"> positive{};
/// -x; unsigned integers wrap. Throws DTypeError for bool.
inline constexpr UnaryFunction<"negative"> negative{};
/// |x|; the lowest integer, bool and unsigned values are unchanged. Gradient 1 at 0, as in JAX.
[[nodiscard]] SHARDARRAY_API Array abs(const Operand& x);
/// -1, 0 or 1 in the dtype of x; NaN for NaN. Gradient 0. Throws DTypeError for bool.
inline constexpr UnaryFunction<"sign"> sign{};
/// x * x; for bool: int32.
inline constexpr UnaryFunction<"square"> square{};
/// 1 / x, floating.
inline constexpr UnaryFunction<"reciprocal"> reciprocal{};
/// Round to integers: down, up and towards 0, in the dtype of x; integers and bool are unchanged. Gradient 0.
[[nodiscard]] SHARDARRAY_API Array floor(const Operand& x);
[[nodiscard]] SHARDARRAY_API Array ceil(const Operand& x);
[[nodiscard]] SHARDARRAY_API Array trunc(const Operand& x);
/// Rounds to the nearest integer, ties to even; floating. Gradient 0.
[[nodiscard]] SHARDARRAY_API Array rint(const Operand& x);
/// Rounds to `decimals` decimals (negative: to tens, hundreds), ties to even, in the dtype of x; unchanged are integers, for any
/// decimals, and numbers without such decimals. Gradient 0. Throws DTypeError for bool.
[[nodiscard]] SHARDARRAY_API Array round(const Operand& x, int decimals = 0);
/// How ties between two integers are rounded.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class RoundingMethod : std::uint8_t { away_from_zero, to_nearest_even };
#pragma GCC diagnostic pop
/// Rounds to integers, ties by `method`: away_from_zero is that of lax.round and C. Throws DTypeError for complex numbers and bool.
[[nodiscard]] SHARDARRAY_API Array round(const Operand& x, RoundingMethod method);
/// min(max(x, lo), hi) in the promoted dtype of all three; hi where lo > hi. NaN if any operand is. One bound may be none: `clip(x, 0)`,
/// `clip(x, none, 1)`.
inline constexpr struct SHARDARRAY_API clip_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& lo, const Array& hi,
                                 Where w = Where::here()) const;
  [[nodiscard]] Array operator()(const Array& x, const Array& lo, none_t hi = none,
                                 Where w = Where::here()) const;
  [[nodiscard]] Array operator()(const Array& x, none_t lo, const Array& hi, Where w = Where::here()) const;
} clip{};
/// As clip, with argument order, dtype and derivative of lax.clamp: the dtype of x, to which lo and hi are cast as by astype; at the
/// bounds x has slope 0, where clip shares it.
inline constexpr struct SHARDARRAY_API clamp_fn {
  [[nodiscard]] Array operator()(const Array& lo, const Array& x, const Array& hi,
                                 Where w = Where::here()) const;
} clamp{};

// ---------------------------------------------------------------- floating functions
/// Elementary functions, angles in radians. Outside their domain they give NaN (log(-1), arcsin(2)), at poles an infinity
/// (log(0) = -inf); special values are C's. Errors are at most 4 ulp in float32 and 5 in float64, except for erf_inv. expm1 is exp(x) - 1
/// and log1p log(1 + x), accurate near 0. Also called asin, acos, atan and atan2. For complex numbers see complex.h.
[[nodiscard]] SHARDARRAY_API Array exp(const Operand& x);
[[nodiscard]] SHARDARRAY_API Array expm1(const Operand& x);
[[nodiscard]] SHARDARRAY_API Array log(const Operand& x);
[[nodiscard]] SHARDARRAY_API Array log1p(const Operand& x);
[[nodiscard]] SHARDARRAY_API Array sqrt(const Operand& x);
/// 1 / sqrt(x).
inline constexpr UnaryFunction<"rsqrt"> rsqrt{};
[[nodiscard]] SHARDARRAY_API Array sin(const Operand& x);
[[nodiscard]] SHARDARRAY_API Array cos(const Operand& x);
[[nodiscard]] SHARDARRAY_API Array tan(const Operand& x);
[[nodiscard]] SHARDARRAY_API Array sinh(const Operand& x);
[[nodiscard]] SHARDARRAY_API Array cosh(const Operand& x);
[[nodiscard]] SHARDARRAY_API Array tanh(const Operand& x);
inline constexpr UnaryFunction<"arcsin"> arcsin{};
inline constexpr UnaryFunction<"arccos"> arccos{};
inline constexpr UnaryFunction<"arctan"> arctan{};
/// arctan2(y, x): the angle of the point (x, y), in [-pi, pi].
inline constexpr BinaryFunction<"arctan2"> arctan2{};
[[nodiscard]] SHARDARRAY_API Array asin(const Operand& x);
[[nodiscard]] SHARDARRAY_API Array acos(const Operand& x);
[[nodiscard]] SHARDARRAY_API Array atan(const Operand& x);
[[nodiscard]] SHARDARRAY_API Array atan2(const Operand& y, const Operand& x);
/// Exponentials and logarithms of other bases, cube root and inverse hyperbolic functions, with C's special values: at most 0.51 ulp in
/// float32 and 2 in float64 (hyperbolic: 3). log2 and log10 of integer powers of 2 and 10 are integers. Also called asinh, acosh and
/// atanh.
[[nodiscard]] SHARDARRAY_API Array exp2(const Operand& x);
[[nodiscard]] SHARDARRAY_API Array log2(const Operand& x);
[[nodiscard]] SHARDARRAY_API Array log10(const Operand& x);
/// Also for negative numbers. Infinite gradient at 0.
[[nodiscard]] SHARDARRAY_API Array cbrt(const Operand& x);
inline constexpr UnaryFunction<"arcsinh"> arcsinh{};
inline constexpr UnaryFunction<"arccosh"> arccosh{};
inline constexpr UnaryFunction<"arctanh"> arctanh{};
[[nodiscard]] SHARDARRAY_API Array asinh(const Operand& x);
[[nodiscard]] SHARDARRAY_API Array acosh(const Operand& x);
[[nodiscard]] SHARDARRAY_API Array atanh(const Operand& x);
/// sqrt(a^2 + b^2) without overflow, within the same bounds; infinite if either operand is, even if the other is NaN. Gradient 0.5 for
/// both at (0, 0), as in JAX.
[[nodiscard]] SHARDARRAY_API Array hypot(const Operand& a, const Operand& b);
/// log(exp(a) + exp(b)) and log2(2^a + 2^b) without overflow: within 4 ulp of max(result, 1). The gradients are the operands' shares of
/// the sum; 1 for an operand equal to the result: for equal infinities, both are 1.
inline constexpr BinaryFunction<"logaddexp"> logaddexp{};
inline constexpr BinaryFunction<"logaddexp2"> logaddexp2{};
/// Converts angles from radians to degrees, and back; floating. Also called rad2deg and deg2rad.
inline constexpr UnaryFunction<"degrees"> degrees{};
inline constexpr UnaryFunction<"radians"> radians{};
inline constexpr UnaryFunction<"degrees"> rad2deg{};
inline constexpr UnaryFunction<"radians"> deg2rad{};
/// sin(pi x) / (pi x); 1 at 0.
inline constexpr UnaryFunction<"sinc"> sinc{};
/// 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x; its inverse erf_inv is infinite at -1 and 1, NaN beyond.
[[nodiscard]] SHARDARRAY_API Array erf(const Operand& x);
/// 1 - erf(x), accurate where that is small.
[[nodiscard]] SHARDARRAY_API Array erfc(const Operand& x);
inline constexpr UnaryFunction<"erf_inv"> erf_inv{};
/// 1 / (1 + exp(-x)).
inline constexpr UnaryFunction<"sigmoid"> sigmoid{};
/// max(x, 0), keeping integers (not floating); for bool int32. Gradient 0 at 0.
inline constexpr UnaryFunction<"relu"> relu{};
/// x * sigmoid(x).
inline constexpr UnaryFunction<"silu"> silu{};
/// x * Phi(x), Phi being the normal distribution function, with the negative tail by erfc; approximate (the default): the tanh form of
/// Hendrycks and Gimpel (2016).
inline constexpr struct SHARDARRAY_API gelu_fn {
  [[nodiscard]] Array operator()(const Array& x, bool approximate = true, Where w = Where::here()) const;
} gelu{};

// ---------------------------------------------------------------- parts of a number
/// bool: whether the sign is negative, also for -0 and NaN. false for bool and unsigned integers.
[[nodiscard]] SHARDARRAY_API Array signbit(const Operand& x);
/// |a| with the sign of b, floating; b, whose sign also counts for -0 and NaN, has no gradient.
[[nodiscard]] SHARDARRAY_API Array copysign(const Operand& a, const Operand& b);
/// The next number after a towards b, floating; b if they are equal. Gradient 0.
[[nodiscard]] SHARDARRAY_API Array nextafter(const Operand& a, const Operand& b);
/// 0 where a < 0, b where a is 0, 1 where a > 0, NaN for NaN; floating. Only b has a gradient.
inline constexpr BinaryFunction<"heaviside"> heaviside{};
/// x - trunc(x) and trunc(x); floating. For an infinity NaN and the infinity, as in JAX.
[[nodiscard]] SHARDARRAY_API std::pair<Array, Array> modf(const Operand& x);
/// The fraction f (1/2 <= |f| < 1; floating, strong) and the int32 exponent e with x = f * 2^e; x itself and 0 for zeros, infinities and
/// NaN. The fraction has the gradient 2^-e.
[[nodiscard]] SHARDARRAY_API std::pair<Array, Array> frexp(const Operand& x);
/// x * 2^n, floating as x, rounded once. Throws DTypeError unless n is integer or bool.
[[nodiscard]] SHARDARRAY_API Array ldexp(const Operand& x, const Operand& n);
/// Options of nan_to_num(): replacements for NaN and infinities.
struct NanToNumOptions {
  double nan = 0;
  std::optional<double> posinf = std::nullopt;  ///< default: the largest number of the dtype
  std::optional<double> neginf = std::nullopt;  ///< default: the lowest number of the dtype
};
/// `nan_to_num(x)`, `nan_to_num(x, {.nan = 1})`: replaces NaN and infinities in x, whose gradient is then 0; bool and integers are
/// unchanged.
inline constexpr struct SHARDARRAY_API nan_to_num_fn {
  [[nodiscard]] Array operator()(const Array& x, const NanToNumOptions& o = {},
                                 Where w = Where::here()) const;
} nan_to_num{};

// ---------------------------------------------------------------- comparisons and logic: bool
/// Comparisons of the promoted values. Complex numbers are ordered by real, then imaginary part; NaN is equal to nothing, and neither
/// less nor greater. isnan, isinf and isfinite are false, false and true for integers and bool. The results are strong bools.
inline constexpr BinaryFunction<"equal"> equal{};
inline constexpr BinaryFunction<"not_equal"> not_equal{};
inline constexpr BinaryFunction<"less"> less{};
inline constexpr BinaryFunction<"less_equal"> less_equal{};
inline constexpr BinaryFunction<"greater"> greater{};
inline constexpr BinaryFunction<"greater_equal"> greater_equal{};
[[nodiscard]] SHARDARRAY_API Array isnan(const Operand& x);
[[nodiscard]] SHARDARRAY_API Array isinf(const Operand& x);
[[nodiscard]] SHARDARRAY_API Array isfinite(const Operand& x);
/// Whether x is +inf, or -inf; false for integers and bool.
inline constexpr UnaryFunction<"isposinf"> isposinf{};
inline constexpr UnaryFunction<"isneginf"> isneginf{};
/// Operands are not promoted: non-bool values count as true unless zero (so does NaN).
inline constexpr BinaryFunction<"logical_and"> logical_and{};
inline constexpr BinaryFunction<"logical_or"> logical_or{};
inline constexpr BinaryFunction<"logical_xor"> logical_xor{};
inline constexpr UnaryFunction<"logical_not"> logical_not{};

// ---------------------------------------------------------------- bits: integers and bool, else DTypeError
/// In the promoted dtype; logical for bools. Throws DTypeError for floats, and for signed integers with uint64, which promote to a float.
inline constexpr BinaryFunction<"bitwise_and"> bitwise_and{};
inline constexpr BinaryFunction<"bitwise_or"> bitwise_or{};
inline constexpr BinaryFunction<"bitwise_xor"> bitwise_xor{};
inline constexpr UnaryFunction<"bitwise_not"> bitwise_not{};
/// Shift amounts beyond the width, including negative ones, give 0. Shifts of bools are int32.
inline constexpr BinaryFunction<"left_shift"> left_shift{};
/// Arithmetic for signed integers, keeping the sign; amounts beyond the width give 0 or -1.
inline constexpr BinaryFunction<"right_shift"> right_shift{};

/// The number of 1 bits, in the dtype of x; for negative numbers in two's complement. Throws DTypeError for bool.
inline constexpr UnaryFunction<"population_count"> population_count{};
/// The number of 1 bits of |x|, uint8.
inline constexpr UnaryFunction<"bitwise_count"> bitwise_count{};
/// The number of 0 bits above the highest 1, in the dtype of x; the full width for 0. Throws DTypeError for bool.
inline constexpr UnaryFunction<"clz"> clz{};

// ---------------------------------------------------------------- selection and types
/// a where condition is true (non-zero), else b, in the promoted dtype of a and b; all three are broadcast. Unselected elements have
/// gradient 0.
inline constexpr struct SHARDARRAY_API where_fn {
  [[nodiscard]] Array operator()(const Array& condition, const Array& a, const Array& b,
                                 Where w = Where::here()) const;
} where{};
/// `select({x < 0, x > 1}, {a, b}, c)`: the choice for the first condition that holds, else `otherwise`, in the promoted dtype of all
/// choices and `otherwise`; all are broadcast. Throws ShapeError unless there are as many choices as conditions, and at least one.
[[nodiscard]] SHARDARRAY_API Array select(const std::vector<Array>& conditions,
                                          const std::vector<Array>& choices, const Array& otherwise = 0,
                                          Where w = Where::here());
/// Casts to another dtype, strong: floats to integers truncate and saturate (NaN gives 0), integers wrap, bool is "non-zero", shorter
/// floats are rounded to nearest even, complex to real drops the imaginary part.
inline constexpr struct SHARDARRAY_API astype_fn {
  [[nodiscard]] Array operator()(const Array& x, DType t, Where w = Where::here()) const;
} astype{};
/// Reinterprets the bits as another dtype of equal width. Throws DTypeError for another width, a complex dtype, and for bool with another
/// one.
inline constexpr struct SHARDARRAY_API bitcast_fn {
  [[nodiscard]] Array operator()(const Array& x, DType t, Where w = Where::here()) const;
} bitcast{};
/// Returns x, treated as a constant by derivatives. For trees: grad.h.
[[nodiscard]] SHARDARRAY_API Array stop_gradient(const Array& x, Where w = Where::here());

}  // namespace shardarray
