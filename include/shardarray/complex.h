// Complex numbers: parts, angle and conjugate. Names and values of jax.numpy and jax.lax.
//
// Arithmetic, powers, elementary functions, sums and products, comparisons, sorting (by real, then by imaginary part) and matrix products
// accept complex operands; operations without meaning for them (floor, remainder, bits, ...) throw DTypeError. Derivatives are JAX's:
// maps between complex numbers are transposed without conjugation, and the gradient of a real loss L at z = x + iy is dL/dx - i dL/dy. To
// descend, use its conjugate: z - rate * conj(grad).
//
// Elementary functions have C's values, including signs of zeros on branch cuts, for parts of any size, and finite derivatives wherever
// these exist: no square or exponential overflows on the way. Both parts are accurate to a few ulp of the result's magnitude; exp2 also
// has the rounding error of its angle imag(z) * ln(2). Unlike in C, both parts may be NaN if one part of z is, or if C's result has a NaN
// part; and exp, expm1, sigmoid and silu are NaN if both parts of z are infinite. arctanh and arctan are infinite closer to 1, -1, i and
// -i than 1e-19 (complex128: 1e-154). Products are computed by parts: infinity times i is NaN + infinity i.
#pragma once
#include "shardarray/detail/function.h"

namespace shardarray {

/// The real part; real numbers unchanged.
inline constexpr UnaryFunction<"real"> real{};
/// The imaginary part; zeros for real numbers.
inline constexpr UnaryFunction<"imag"> imag{};
/// a + i b, complex64 from float32 and complex128 from float64: operands are broadcast, promoted, and converted to floats of at least 32
/// bits. Throws DTypeError for complex operands.
inline constexpr BinaryFunction<"complex"> complex{};
/// real(x) - i imag(x); real numbers unchanged. Also called conj.
inline constexpr UnaryFunction<"conjugate"> conjugate{};
inline constexpr UnaryFunction<"conjugate"> conj{};
/// arctan2(imag(x), real(x)), floating: from -pi to pi; for real numbers 0 or pi.
inline constexpr UnaryFunction<"angle"> angle{};
/// bool: whether the imaginary part is non-zero (iscomplex) or zero (isreal).
inline constexpr UnaryFunction<"iscomplex"> iscomplex{};
inline constexpr UnaryFunction<"isreal"> isreal{};

}  // namespace shardarray
