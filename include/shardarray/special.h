// Special functions: SciPy's names, as in jax.scipy.special. Elementwise and floating, as in math.h, with the same exceptions;
// 16-bit floats are computed in float32 and rounded once.
#pragma once
#include "shardarray/math.h"

namespace shardarray {

/// The gamma function, (x - 1)! of whole numbers (exact up to 23), to 0.51 ulp in float32 and 16 in float64: infinite from 171.63 on
/// (float32: 35.05), with the sign of x at 0 and -0, NaN at -1, -2, ... and -inf. (Of a number that is no array, `gamma` without `sa::`
/// is C's, which is log(|gamma(x)|).) Throws DTypeError for complex numbers.
[[nodiscard]] SHARDARRAY_API Array gamma(const Operand& x);
/// log(|gamma(x)|): infinite at 0, -1, -2, ... At most 0.51 ulp in float32, 5 in float64.
[[nodiscard]] SHARDARRAY_API Array lgamma(const Operand& x);
/// Its derivative, to 0.51 ulp in float32; in float64 off by at most 1e-14 of the larger one of |x|, the result and 1. NaN at 0, -1, -2, ...
/// and -inf. Its derivatives are polygamma functions, of negative x too.
inline constexpr UnaryFunction<"digamma"> digamma{};
/// The modified Bessel function of order 0, to 0.51 ulp in float32 and 8 in float64; infinite where it overflows.
inline constexpr UnaryFunction<"i0"> i0{};
/// That of order 1, to 0.51 ulp in float32 and 10 in float64: odd, infinite where it overflows, at infinities too (NaN in JAX).
inline constexpr UnaryFunction<"i1"> i1{};
/// exp(-|x|) times i0 and i1, to 0.51 ulp in float32 and 14 in float64: finite everywhere, 0 at infinities. The slope is a difference
/// of such values, as in JAX: far from 0 it loses digits, as many as |x| has before the point.
inline constexpr UnaryFunction<"i0e"> i0e{};
inline constexpr UnaryFunction<"i1e"> i1e{};
/// The exponential integral, that of exp(-t) / t from x to infinity, to 0.51 ulp in float32 and 8 in float64: infinite at 0, 0 at
/// infinity, NaN below 0 as in JAX (where SciPy has the real part).
inline constexpr UnaryFunction<"exp1"> exp1{};
/// The distribution function of the standard normal distribution, with the digits of erfc where it is small.
inline constexpr UnaryFunction<"ndtr"> ndtr{};
/// Its inverse, to 4 ulp in float32 and 8 in float64: infinite at 0 and 1, NaN beyond. Towards 1/2, where it is 0, p - 1/2 is exact.
inline constexpr UnaryFunction<"ndtri"> ndtri{};
/// The logarithm of ndtr: to a few ulp left of 0, where ndtr is 0 too, and with the digits of ndtr(-x) right of it.
inline constexpr UnaryFunction<"log_ndtr"> log_ndtr{};
/// The logarithm of the beta function, lgamma(a) + lgamma(b) - lgamma(a + b): as exact as the largest of these.
inline constexpr BinaryFunction<"betaln"> betaln{};
/// The logarithm of the multivariate gamma function of order d. Throws Error for d < 1.
[[nodiscard]] SHARDARRAY_API Array multigammaln(const Array& a, std::int64_t d, Where w = Where::here());
/// n! as exp(lgamma(n + 1)), 0 of negative n.
inline constexpr UnaryFunction<"factorial"> factorial{};
/// a log(a / b), and that minus a plus b: 0 and b where a is 0; infinite where one is negative, and for a positive a over 0.
inline constexpr BinaryFunction<"rel_entr"> rel_entr{};
inline constexpr BinaryFunction<"kl_div"> kl_div{};
/// -x log(x): 0 at 0, -inf below. Gradient -log(x) - 1: inf at 0, NaN below.
inline constexpr UnaryFunction<"entr"> entr{};
/// a log(b) and a log(1 + b); 0 where a is 0, whatever b, unless that is NaN. Gradients log(b) and a / b, at the poles too: -inf and
/// NaN at (0, 0).
inline constexpr BinaryFunction<"xlogy"> xlogy{};
inline constexpr BinaryFunction<"xlog1py"> xlog1py{};
/// log(x / (1 - x)), with all digits near 1/2 too; infinite at 0 and 1, NaN beyond. expit is its inverse: sigmoid.
inline constexpr UnaryFunction<"logit"> logit{};
inline constexpr UnaryFunction<"sigmoid"> expit{};
/// log(1 - exp(-x)) for x > 0, with all digits for small x too: -inf at 0, NaN below.
inline constexpr UnaryFunction<"log1mexp"> log1mexp{};

}  // namespace shardarray
