// Elementary functions as kernel IR. float64 ones are one `call`; float32 ones are expanded into add, mul, fma, select and bit operations
// (own polynomials; 64-bit intermediates where single precision is not enough), so that all backends give the same bits. Special values are
// those of C; denormals are kept.
//
// The bounds, in ulp of the true value, hold for the float32 forms, tested on samples of all bit patterns; for float64 see scalar.h.
#pragma once
#include "runtime/kernel_builder.h"

namespace shardarray::expand {

// Operands are float32 or float64 values of the builder; the result has their type.
int exp(KernelBuilder& b, int x);           ///< 1
int expm1(KernelBuilder& b, int x);         ///< 1.75
int log(KernelBuilder& b, int x);           ///< 1
int log1p(KernelBuilder& b, int x);         ///< 1.5
int sin(KernelBuilder& b, int x);           ///< 1.5
int cos(KernelBuilder& b, int x);           ///< 1.5
int tan(KernelBuilder& b, int x);           ///< 3
int asin(KernelBuilder& b, int x);          ///< 2.25
int acos(KernelBuilder& b, int x);          ///< 1.5
int atan(KernelBuilder& b, int x);          ///< 1.75
int atan2(KernelBuilder& b, int y, int x);  ///< 1.75
int sinh(KernelBuilder& b, int x);          ///< 2.25
int cosh(KernelBuilder& b, int x);          ///< 1.75
int tanh(KernelBuilder& b, int x);          ///< 2.5
int logistic(KernelBuilder& b, int x);      ///< 2.5; 1 / (1 + exp(-x))
int erf(KernelBuilder& b, int x);           ///< 1
int erfc(KernelBuilder& b, int x);          ///< 4
/// Giles' polynomial in JAX's evaluation order, for equal random numbers: 6 for |x| < 0.9, up to 80 towards 1 (because x * x is rounded).
int erf_inv(KernelBuilder& b, int x);
int pow(KernelBuilder& b, int x, int y);  ///< 0.51
int lgamma(KernelBuilder& b, int x);      ///< 0.51; float32 goes through float64

// In expand_powers.cpp, with 64-bit intermediates: 0.51 (float64: 2; asinh, acosh, atanh: 3).
int exp2(KernelBuilder& b, int x);
int log2(KernelBuilder& b, int x);   ///< exact for 2^k
int log10(KernelBuilder& b, int x);  ///< exact for 10^k
int cbrt(KernelBuilder& b, int x);
int asinh(KernelBuilder& b, int x);
int acosh(KernelBuilder& b, int x);
int atanh(KernelBuilder& b, int x);
/// sqrt(x^2 + y^2) without overflow; infinite if an operand is.
int hypot(KernelBuilder& b, int x, int y);
/// log(exp(x) + exp(y)), or log2(2^x + 2^y), without overflow: 4 ulp of the larger of the result and 1.
int logaddexp(KernelBuilder& b, int x, int y, bool base2);

// In expand_special.cpp; float32 goes through float64, except ndtri.
/// The polygamma function of this order, where 1 is digamma. NaN at 0, -1, -2, ...; +inf for even orders.
int polygamma(KernelBuilder& b, int x, int order);
/// The modified Bessel function I of this order.
int bessel_i(KernelBuilder& b, int x, int order);
/// The same, times exp(-|x|).
int bessel_ie(KernelBuilder& b, int x, int order);
/// NaN at -1, -2, ... and -inf.
int gamma(KernelBuilder& b, int x);
/// The exponential integral E1: NaN below 0.
int exp1(KernelBuilder& b, int x);
/// The inverse of the normal cumulative distribution function: 4.
int ndtri(KernelBuilder& b, int p);

}  // namespace shardarray::expand
