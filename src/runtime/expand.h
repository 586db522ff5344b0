// Elementary functions as kernel IR. float64 ones are one `call`; float32 ones are written out in add, mul,
// fma, select and bit operations (own polynomials; 64 bits inside where single precision needs more), so that
// every backend gives the same bits. Special values are those of C's functions; denormals are kept.
//
// The bounds, in ulp of the true value, are those of the float32 forms, tested on samples of all bit
// patterns; float64: see scalar.h.
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
/// Giles' polynomial in the order JAX evaluates it, for equal random numbers: 6 for |x| < 0.9, towards 1 up
/// to 80 (x * x is rounded).
int erf_inv(KernelBuilder& b, int x);
int pow(KernelBuilder& b, int x, int y);  ///< 0.51
int lgamma(KernelBuilder& b, int x);      ///< 0.51; float32 goes through float64

}  // namespace shardarray::expand
