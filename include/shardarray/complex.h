// Complex numbers: their parts, angle and conjugate. Names and values of jax.numpy and jax.lax.
//
// Arithmetic, powers, elementary functions, sums and products, comparisons, sorting (by the real part, then by the imaginary one)
// and products of matrices take complex operands; what has no meaning for them (floor, remainder, bits, ...) throws DTypeError.
// Derivatives are JAX's: maps between complex numbers are transposed without a conjugate, and the gradient of a real loss L at
// z = x + iy is dL/dx - i dL/dy. What steps down the loss is its conjugate: z - rate * conj(grad).
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
