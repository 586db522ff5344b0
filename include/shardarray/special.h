// Special functions: SciPy's names, as in jax.scipy.special. Elementwise and floating, as in math.h, with the same exceptions; 16-bit
// floats are computed in float32 and rounded once.
#pragma once
#include "shardarray/math.h"

namespace shardarray {

/// The gamma function, (x - 1)! for positive integers (exact up to 23), to 0.51 ulp in float32 and 16 in float64: infinite from 171.63 on
/// (float32: 35.05), with the sign of x at 0 and -0, NaN at -1, -2, ... and -inf. (For a plain number, `gamma` without `sa::` is C's,
/// which is log(|gamma(x)|).) Throws DTypeError for complex numbers.
[[nodiscard]] SHARDARRAY_API Array gamma(const Operand& x);
/// log(|gamma(x)|): infinite at 0, -1, -2, ... At most 0.51 ulp in float32, 5 in float64.
[[nodiscard]] SHARDARRAY_API Array lgamma(const Operand& x);
/// The derivative of lgamma, to 0.51 ulp in float32; in float64 within 1e-14 * max(|x|, |result|, 1). NaN at 0, -1, -2, ... and -inf. Its
/// derivatives are polygamma functions, also for negative x.
inline constexpr UnaryFunction<"digamma"> digamma{};
/// The modified Bessel function of order 0, to 0.51 ulp in float32 and 8 in float64; infinite where it overflows.
inline constexpr UnaryFunction<"i0"> i0{};
/// The same of order 1, to 0.51 ulp in float32 and 10 in float64: odd, infinite where it overflows, also at infinities (NaN in JAX).
inline constexpr UnaryFunction<"i1"> i1{};
/// exp(-|x|) times i0 and i1, to 0.51 ulp in float32 and 14 in float64: finite everywhere, 0 at infinities. The slope is a difference of
/// such values, as in JAX: far from 0 it loses as many digits as |x| has before the point.
inline constexpr UnaryFunction<"i0e"> i0e{};
inline constexpr UnaryFunction<"i1e"> i1e{};
/// The exponential integral: the integral of exp(-t) / t from x to infinity, to 0.51 ulp in float32 and 8 in float64: infinite at 0, 0 at
/// infinity, NaN below 0 as in JAX (SciPy gives the real part).
inline constexpr UnaryFunction<"exp1"> exp1{};
/// The standard normal distribution function, with the accuracy of erfc where it is small.
inline constexpr UnaryFunction<"ndtr"> ndtr{};
/// Inverse of ndtr, to 4 ulp in float32 and 8 in float64: infinite at 0 and 1, NaN beyond. Near its zero at 1/2, p - 1/2 is exact.
inline constexpr UnaryFunction<"ndtri"> ndtri{};
/// The logarithm of ndtr: to a few ulp left of 0, even where ndtr underflows to 0, and with the accuracy of ndtr(-x) right of it.
inline constexpr UnaryFunction<"log_ndtr"> log_ndtr{};
/// The logarithm of the beta function, lgamma(a) + lgamma(b) - lgamma(a + b): as accurate as the largest of these.
inline constexpr BinaryFunction<"betaln"> betaln{};
/// The logarithm of the multivariate gamma function of order d. Throws Error for d < 1.
[[nodiscard]] SHARDARRAY_API Array multigammaln(const Array& a, std::int64_t d, Where w = Where::here());
/// n! as exp(lgamma(n + 1)), 0 for negative n.
inline constexpr UnaryFunction<"factorial"> factorial{};
/// a log(a / b), and the same minus a plus b: 0 and b where a is 0; infinite where either is negative, and for positive a with b = 0.
inline constexpr BinaryFunction<"rel_entr"> rel_entr{};
inline constexpr BinaryFunction<"kl_div"> kl_div{};
/// -x log(x): 0 at 0, -inf below. Gradient -log(x) - 1: inf at 0, NaN below.
inline constexpr UnaryFunction<"entr"> entr{};
/// a log(b) and a log(1 + b); 0 where a is 0, whatever b, unless that is NaN. Gradients log(b) and a / b, also at the poles: -inf and NaN
/// at (0, 0).
inline constexpr BinaryFunction<"xlogy"> xlogy{};
inline constexpr BinaryFunction<"xlog1py"> xlog1py{};
/// log(x / (1 - x)), accurate near 1/2 too; infinite at 0 and 1, NaN beyond. expit is its inverse: sigmoid.
inline constexpr UnaryFunction<"logit"> logit{};
inline constexpr UnaryFunction<"sigmoid"> expit{};
/// log(1 - exp(-x)) for x > 0, accurate for small x too: -inf at 0, NaN below.
inline constexpr UnaryFunction<"log1mexp"> log1mexp{};

}  // namespace shardarray
