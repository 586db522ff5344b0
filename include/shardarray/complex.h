// Complex numbers: their parts, angle and conjugate. Names and values of jax.numpy and jax.lax.
//
// Arithmetic, powers, elementary functions, sums and products, comparisons, sorting (by the real part, then by the imaginary one)
// and products of matrices take complex operands; what has no meaning for them (floor, remainder, bits, ...) throws DTypeError.
// Derivatives are JAX's: maps between complex numbers are transposed without a conjugate, and the gradient of a real loss L at
// z = x + iy is dL/dx - i dL/dy. What steps down the loss is its conjugate: z - rate * conj(grad).
//
// Elementary functions have C's values, signs of zeros on cuts included, however large, small or infinite a part is, and derivatives
// wherever these are numbers: no square or exponential overflows on the way. Both parts are off by a few ulp of the size of the result;
// of exp2 also by what its angle imag(z) * ln(2) was rounded by. Other than in C, both parts may be NaN where one part of z is, or where
// C's result has a NaN part; and exp, expm1, sigmoid and silu are NaN where both parts of z are infinite. arctanh and arctan are infinite
// closer to 1, -1, i and -i than 1e-19, of complex128 than 1e-154. Products are those of the parts: infinity times i is NaN + infinity i.
#pragma once
#include "shardarray/detail/function.h"

namespace shardarray {

/// The real part, of floats and other real numbers themselves.
inline constexpr UnaryFunction<"real"> real{};
/// The imaginary part; zeros of real numbers.
inline constexpr UnaryFunction<"imag"> imag{};
/// a + i b, complex64 of float32 and complex128 of float64: the operands are broadcast, promoted, and made floats of 32 bits at
/// least. Throws DTypeError for complex operands.
inline constexpr BinaryFunction<"complex"> complex{};
/// real(x) - i imag(x); real numbers themselves. conj is its other name.
inline constexpr UnaryFunction<"conjugate"> conjugate{};
inline constexpr UnaryFunction<"conjugate"> conj{};
/// arctan2(imag(x), real(x)), floating: from -pi to pi; of real numbers 0 or pi.
inline constexpr UnaryFunction<"angle"> angle{};
/// Is the imaginary part not zero, or zero? bool.
inline constexpr UnaryFunction<"iscomplex"> iscomplex{};
inline constexpr UnaryFunction<"isreal"> isreal{};

}  // namespace shardarray
