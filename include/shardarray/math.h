// Elementwise functions: numpy's names, JAX's types.
//
// Operands are broadcast to one shape, as in numpy, and promoted to one dtype (see promote_types), which is the result's unless a
// doc says otherwise; numbers are weak and take the other operand's dtype. "Floating" functions give float32 for bool and integers
// (float64 for 64-bit ones). Integers wrap.
//
// All throw ShapeError when shapes cannot be broadcast, DTypeError for a whole-number literal that is no value of the dtype that it
// takes (`uint8 + 300`), Error for an absent array, DonationError for a donated one. All can be passed to vmap and jit: they are
// function objects or, where C has the name too (abs, exp, sin, ...), functions, which stand beside C's under
// `using namespace shardarray`: abs(x) of an array is an array's, abs(2) C's. The line that messages and explain() show is the
// caller's: `w`, or that of the first operand.
#pragma once
#include <optional>
#include <utility>
#include <vector>

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
/// a / b, floating: of integers too, 1 / 2 is 0.5. By 0 infinite or NaN. true_divide is its other name. Of complex numbers what is
/// finite is 0 by one with an infinite part, as in C and JAX; but NaN parts count beside infinite ones, and an infinite number by one with
/// a part that is 0 may be NaN in both, where these give an infinity.
inline constexpr BinaryFunction<"divide"> divide{};
inline constexpr BinaryFunction<"divide"> true_divide{};
/// The largest whole number <= a / b; integers stay integers, of bools int32. 16-bit floats are divided in float32. a / 0 is -1 of
/// integers (unsigned: the largest number), as of lax.div, where jnp.floor_divide gives -2 and NumPy 0; infinite or NaN of floats.
inline constexpr BinaryFunction<"floor_divide"> floor_divide{};
/// a - floor(a / b) * b: the sign of b; integers stay integers, of bools int32. a % 0 is a of integers, as of lax.rem,
/// where jnp.remainder and NumPy give 0; NaN of floats.
[[nodiscard]] SHARDARRAY_API Array remainder(const Operand& a, const Operand& b);
/// floor_divide and remainder, in this order.
inline constexpr struct SHARDARRAY_API divmod_fn {
  [[nodiscard]] std::pair<Array, Array> operator()(const Array& a, const Array& b,
                                                   Where w = Where::here()) const;
} divmod{};
/// a - trunc(a / b) * b: the sign of a; integers stay integers, of bools int32. By 0 a of integers, as of lax.rem,
/// where jnp.fmod and NumPy give 0; NaN of floats. rem is its other name.
[[nodiscard]] SHARDARRAY_API Array fmod(const Operand& a, const Operand& b);
inline constexpr BinaryFunction<"fmod"> rem{};
/// The greatest common divisor, which is not negative, and the least common multiple: integers only, else DTypeError. gcd(0, 0) and
/// lcm(x, 0) are 0; what does not fit wraps. gcd costs as many divisions as the width may need, whatever the numbers.
inline constexpr BinaryFunction<"gcd"> gcd{};
inline constexpr BinaryFunction<"lcm"> lcm{};
/// a to the power b. An integer literal b multiplies repeatedly and keeps the dtype of a; of bools: int32. Of an integer array b
/// the low 6 bits count, as in JAX: negative ones give nothing useful. 0 to the power 0 is 1. Throws DTypeError for an integer
/// to a negative literal power. pow is its other name.
inline constexpr BinaryFunction<"power"> power{};
[[nodiscard]] SHARDARRAY_API Array pow(const Operand& a, const Operand& b);
/// a to the power b, floating: negative whole exponents too.
inline constexpr BinaryFunction<"float_power"> float_power{};
/// The larger one; NaN when one is. Of bools: or. Ties share the gradient.
inline constexpr BinaryFunction<"maximum"> maximum{};
/// The smaller one; NaN when one is. Of bools: and.
inline constexpr BinaryFunction<"minimum"> minimum{};
/// The larger (smaller) one, or the one that is no NaN; ties have the gradient of b.
[[nodiscard]] SHARDARRAY_API Array fmax(const Operand& a, const Operand& b);
[[nodiscard]] SHARDARRAY_API Array fmin(const Operand& a, const Operand& b);
/// a * b + c, rounded once; floating.
[[nodiscard]] SHARDARRAY_API Array fma(const Operand& a, const Operand& b, const Operand& c);
/// x itself.
inline constexpr UnaryFunction<"positive"> positive{};
/// -x; unsigned numbers wrap. Throws DTypeError for bool.
inline constexpr UnaryFunction<"negative"> negative{};
/// |x|, also of the lowest integer, which stays as it is; bool and unsigned stay. Gradient 1 at 0, as in JAX.
[[nodiscard]] SHARDARRAY_API Array abs(const Operand& x);
/// -1, 0 or 1 in the dtype of x; NaN of NaN. Gradient 0. Throws DTypeError for bool.
inline constexpr UnaryFunction<"sign"> sign{};
/// x * x; of bool: int32.
inline constexpr UnaryFunction<"square"> square{};
/// 1 / x, floating.
inline constexpr UnaryFunction<"reciprocal"> reciprocal{};
/// Rounding to whole numbers, down, up and towards 0, in the dtype of x; integers and bool stay as they are. Gradient 0.
[[nodiscard]] SHARDARRAY_API Array floor(const Operand& x);
[[nodiscard]] SHARDARRAY_API Array ceil(const Operand& x);
[[nodiscard]] SHARDARRAY_API Array trunc(const Operand& x);
/// To the nearest whole number, halves to even; floating. Gradient 0.
[[nodiscard]] SHARDARRAY_API Array rint(const Operand& x);
/// To `decimals` decimals (negative: to tens, hundreds), halves to even, in the dtype of x; integers stay as they are, whatever the
/// decimals, and what has no such decimals. Gradient 0. Throws DTypeError for bool.
[[nodiscard]] SHARDARRAY_API Array round(const Operand& x, int decimals = 0);
/// Where a number between two whole ones goes that is as far from both.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class RoundingMethod : std::uint8_t { away_from_zero, to_nearest_even };
#pragma GCC diagnostic pop
/// To whole numbers, halves as the method says: away_from_zero is lax.round's and C's. Throws DTypeError for complex numbers and bool.
[[nodiscard]] SHARDARRAY_API Array round(const Operand& x, RoundingMethod method);
/// min(max(x, lo), hi) of the promoted dtype of all three; hi where lo > hi. NaN where one is.
inline constexpr struct SHARDARRAY_API clip_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& lo, const Array& hi,
                                 Where w = Where::here()) const;
} clip{};
/// clip in the order, with the dtype and the derivative of lax.clamp: the dtype of x, which lo and hi take as astype does it; at its ends x
/// has the slope 0, where clip shares it.
inline constexpr struct SHARDARRAY_API clamp_fn {
  [[nodiscard]] Array operator()(const Array& lo, const Array& x, const Array& hi,
                                 Where w = Where::here()) const;
} clamp{};

// ---------------------------------------------------------------- floating functions
/// Elementary functions, angles in radians. Outside of their domain they give NaN (log(-1), arcsin(2)), at poles an infinity
/// (log(0) = -inf), special values are C's. Errors are at most 4 ulp in float32 and 5 in float64, but for erf_inv. expm1 is
/// exp(x) - 1 and log1p log(1 + x), with all digits near 0. asin, acos, atan and atan2 are other names. Of complex numbers: complex.h.
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
/// arctan2(y, x): the angle of the point (x, y) in [-pi, pi].
inline constexpr BinaryFunction<"arctan2"> arctan2{};
[[nodiscard]] SHARDARRAY_API Array asin(const Operand& x);
[[nodiscard]] SHARDARRAY_API Array acos(const Operand& x);
[[nodiscard]] SHARDARRAY_API Array atan(const Operand& x);
[[nodiscard]] SHARDARRAY_API Array atan2(const Operand& y, const Operand& x);
/// Those of other bases, the cube root and the inverse hyperbolic functions, with the same special values: at most 0.51 ulp in
/// float32 and 2 in float64 (the hyperbolic ones 3). log2 and log10 of whole powers of 2 and 10 are whole. asinh, acosh and
/// atanh are other names.
[[nodiscard]] SHARDARRAY_API Array exp2(const Operand& x);
[[nodiscard]] SHARDARRAY_API Array log2(const Operand& x);
[[nodiscard]] SHARDARRAY_API Array log10(const Operand& x);
/// Of negative numbers too. Infinite gradient at 0.
[[nodiscard]] SHARDARRAY_API Array cbrt(const Operand& x);
inline constexpr UnaryFunction<"arcsinh"> arcsinh{};
inline constexpr UnaryFunction<"arccosh"> arccosh{};
inline constexpr UnaryFunction<"arctanh"> arctanh{};
[[nodiscard]] SHARDARRAY_API Array asinh(const Operand& x);
[[nodiscard]] SHARDARRAY_API Array acosh(const Operand& x);
[[nodiscard]] SHARDARRAY_API Array atanh(const Operand& x);
/// sqrt(a^2 + b^2) without overflow, to the same bounds; infinite where one is, beside NaN too. Gradient 0.5 for both at (0, 0), as
/// in JAX.
[[nodiscard]] SHARDARRAY_API Array hypot(const Operand& a, const Operand& b);
/// log(exp(a) + exp(b)) and log2(2^a + 2^b) without overflow: off by at most 4 ulp of the larger one of the result and 1. The
/// gradients are the operands' shares of the sum; 1 of an operand that is equal to the result: of equal infinities both have 1.
inline constexpr BinaryFunction<"logaddexp"> logaddexp{};
inline constexpr BinaryFunction<"logaddexp2"> logaddexp2{};
/// Angles from radians to degrees, and back; floating. rad2deg and deg2rad are other names.
inline constexpr UnaryFunction<"degrees"> degrees{};
inline constexpr UnaryFunction<"radians"> radians{};
inline constexpr UnaryFunction<"degrees"> rad2deg{};
inline constexpr UnaryFunction<"radians"> deg2rad{};
/// sin(pi x) / (pi x); 1 at 0.
inline constexpr UnaryFunction<"sinc"> sinc{};
/// 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x; erf_inv is its inverse: infinite at -1 and 1, NaN beyond.
[[nodiscard]] SHARDARRAY_API Array erf(const Operand& x);
/// 1 - erf(x), with all digits where that is small.
[[nodiscard]] SHARDARRAY_API Array erfc(const Operand& x);
inline constexpr UnaryFunction<"erf_inv"> erf_inv{};
/// 1 / (1 + exp(-x)).
inline constexpr UnaryFunction<"sigmoid"> sigmoid{};
/// max(x, 0), keeping integers (not floating), of bool int32; gradient 0 at 0.
inline constexpr UnaryFunction<"relu"> relu{};
/// x * sigmoid(x).
inline constexpr UnaryFunction<"silu"> silu{};
/// x * Phi(x), Phi the normal distribution function; the negative tail by erfc; approximate (the default): the tanh form of
/// Hendrycks and Gimpel (2016).
inline constexpr struct SHARDARRAY_API gelu_fn {
  [[nodiscard]] Array operator()(const Array& x, bool approximate = true, Where w = Where::here()) const;
} gelu{};

// ---------------------------------------------------------------- the parts of a number
/// bool: is the sign negative, of -0 and NaN too? Of bool and unsigned integers false.
[[nodiscard]] SHARDARRAY_API Array signbit(const Operand& x);
/// |a| with the sign of b, floating; b, whose sign counts of -0 and NaN too, has no gradient.
[[nodiscard]] SHARDARRAY_API Array copysign(const Operand& a, const Operand& b);
/// The next number behind a towards b, floating; b where they are equal. Gradient 0.
[[nodiscard]] SHARDARRAY_API Array nextafter(const Operand& a, const Operand& b);
/// 0 where a < 0, b where a is 0, 1 where a > 0, NaN of NaN; floating. Gradient of b alone.
inline constexpr BinaryFunction<"heaviside"> heaviside{};
/// x - trunc(x) and trunc(x); floating. NaN and infinite of infinities, as in JAX.
[[nodiscard]] SHARDARRAY_API std::pair<Array, Array> modf(const Operand& x);
/// The fraction (1/2 <= |f| < 1; floating, strong) and the int32 exponent e of x = f * 2^e; x itself and 0 of zeros, infinities and
/// NaN. Gradient of the fraction: 2^-e.
[[nodiscard]] SHARDARRAY_API std::pair<Array, Array> frexp(const Operand& x);
/// x * 2^n, floating as x, rounded once. Throws DTypeError for an n that is neither integer nor bool.
[[nodiscard]] SHARDARRAY_API Array ldexp(const Operand& x, const Operand& n);
/// Options of nan_to_num(): what stands in the place of NaN and of infinities.
struct NanToNumOptions {
  double nan = 0;
  std::optional<double> posinf = std::nullopt;  ///< default: the largest number of the dtype
  std::optional<double> neginf = std::nullopt;  ///< default: the lowest number of the dtype
};
/// `nan_to_num(x)`, `nan_to_num(x, {.nan = 1})`: x with numbers in the place of NaN and infinities, whose gradient is 0; bool and
/// integers stay.
inline constexpr struct SHARDARRAY_API nan_to_num_fn {
  [[nodiscard]] Array operator()(const Array& x, const NanToNumOptions& o = {},
                                 Where w = Where::here()) const;
} nan_to_num{};

// ---------------------------------------------------------------- comparisons and logic: bool
/// Comparisons of the promoted values; complex numbers are ordered by the real part, then by the imaginary one; NaN is equal to nothing, and neither less nor greater. isnan, isinf and isfinite are false,
/// false and true of integers and bool. The results are strong bools.
inline constexpr BinaryFunction<"equal"> equal{};
inline constexpr BinaryFunction<"not_equal"> not_equal{};
inline constexpr BinaryFunction<"less"> less{};
inline constexpr BinaryFunction<"less_equal"> less_equal{};
inline constexpr BinaryFunction<"greater"> greater{};
inline constexpr BinaryFunction<"greater_equal"> greater_equal{};
[[nodiscard]] SHARDARRAY_API Array isnan(const Operand& x);
[[nodiscard]] SHARDARRAY_API Array isinf(const Operand& x);
[[nodiscard]] SHARDARRAY_API Array isfinite(const Operand& x);
/// x is +inf, x is -inf; false of integers and bool.
inline constexpr UnaryFunction<"isposinf"> isposinf{};
inline constexpr UnaryFunction<"isneginf"> isneginf{};
/// Operands are not promoted: what is not bool counts as "not zero" (NaN too).
inline constexpr BinaryFunction<"logical_and"> logical_and{};
inline constexpr BinaryFunction<"logical_or"> logical_or{};
inline constexpr BinaryFunction<"logical_xor"> logical_xor{};
inline constexpr UnaryFunction<"logical_not"> logical_not{};

// ---------------------------------------------------------------- bits: integers and bool, else DTypeError
/// Of the promoted dtype; of bools logical. Throws DTypeError for floats, and for signed integers with uint64, which promote to a float.
inline constexpr BinaryFunction<"bitwise_and"> bitwise_and{};
inline constexpr BinaryFunction<"bitwise_or"> bitwise_or{};
inline constexpr BinaryFunction<"bitwise_xor"> bitwise_xor{};
inline constexpr UnaryFunction<"bitwise_not"> bitwise_not{};
/// Amounts beyond the width, negative ones too, give 0. Shifts of bools are int32.
inline constexpr BinaryFunction<"left_shift"> left_shift{};
/// Arithmetic on signed integers: the sign stays; amounts beyond the width give 0 or -1.
inline constexpr BinaryFunction<"right_shift"> right_shift{};

/// How many bits are 1, in the dtype of x; of negative numbers in two's complement. Throws DTypeError for bool.
inline constexpr UnaryFunction<"population_count"> population_count{};
/// How many bits of |x| are 1, uint8.
inline constexpr UnaryFunction<"bitwise_count"> bitwise_count{};
/// How many bits above the highest 1 are 0, in the dtype of x; of 0 all. Throws DTypeError for bool.
inline constexpr UnaryFunction<"clz"> clz{};

// ---------------------------------------------------------------- selection and types
/// a where condition (not zero), else b, of the promoted dtype of a and b; all three are broadcast. Gradients of what is not chosen
/// are 0.
inline constexpr struct SHARDARRAY_API where_fn {
  [[nodiscard]] Array operator()(const Array& condition, const Array& a, const Array& b,
                                 Where w = Where::here()) const;
} where{};
/// `select({x < 0, x > 1}, {a, b}, c)`: the choice of the first condition that holds, else `otherwise`, of the promoted dtype of all
/// choices and of `otherwise`; all are broadcast. Throws ShapeError unless there are as many choices as conditions, one at least.
[[nodiscard]] SHARDARRAY_API Array select(const std::vector<Array>& conditions,
                                          const std::vector<Array>& choices, const Array& otherwise = 0,
                                          Where w = Where::here());
/// The values as another dtype, strong: floats to integers truncate and saturate (NaN is 0), integers wrap, to bool is "not zero",
/// to shorter floats rounds to nearest even, from complex ones to others drops the imaginary part.
inline constexpr struct SHARDARRAY_API astype_fn {
  [[nodiscard]] Array operator()(const Array& x, DType t, Where w = Where::here()) const;
} astype{};
/// The bits as another dtype of the same width. Throws DTypeError for another width, a complex dtype, and for bool with another one.
inline constexpr struct SHARDARRAY_API bitcast_fn {
  [[nodiscard]] Array operator()(const Array& x, DType t, Where w = Where::here()) const;
} bitcast{};
/// x itself, as a constant for derivatives. Trees: grad.h.
[[nodiscard]] SHARDARRAY_API Array stop_gradient(const Array& x, Where w = Where::here());

}  // namespace shardarray
