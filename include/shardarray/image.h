// Resizing images. Names and values of jax.image.
#pragma once
#include <cstdint>

#include "shardarray/ops.h"

namespace shardarray {

/// How an element of a resized array is computed: from the nearest element, or from those around it by a triangle kernel, Keys' cubic
/// kernel, or Lanczos kernels of 3 and 5 elements on each side.
enum class ResizeMethod : std::uint8_t { nearest, linear, cubic, lanczos3, lanczos5 };

/// Resizes x to the given sizes of all dimensions. Elements are centred at half-integers, and weights at the border are renormalised.
/// Along shrinking dimensions kernels are widened accordingly unless `antialias` is false (nearest: never). Floating, except nearest,
/// which keeps the dtype; 16-bit floats are computed in float32; complex numbers are resized by parts. Takes a matrix product per
/// dimension that changes, with new size by old size weights. Throws ShapeError for another number of sizes, negative ones, and if
/// elements would be made from an empty dimension; DTypeError for bools, except with nearest. Source: jax.image.resize.
inline constexpr struct SHARDARRAY_API resize_fn {
  [[nodiscard]] Array operator()(const Array& x, const Shape& shape, ResizeMethod method,
                                 bool antialias = true, Where w = Where::here()) const;
} resize{};

}  // namespace shardarray
