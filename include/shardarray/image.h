// Images: other sizes. Names and values of jax.image.
#pragma once
#include <cstdint>

#include "shardarray/ops.h"

namespace shardarray {

/// What an element of a resized array is made of: the nearest one; those around it by a triangle, by Keys' cubic kernel, or by Lanczos
/// kernels of 3 and 5 elements on each side.
enum class ResizeMethod : std::uint8_t { nearest, linear, cubic, lanczos3, lanczos5 };

/// x with other sizes, all dimensions given; elements have their middle at half numbers, and weights at the border are scaled up. Where a
/// size shrinks, kernels are as much wider unless `antialias` is false (nearest: never). Floating, but for nearest, which keeps the dtype;
/// 16-bit floats are computed in float32; of complex numbers each part is resized. A matrix product for each dimension that changes: new size by old size weights. Throws ShapeError
/// for another number of sizes, for negative ones, and where something should be made of nothing; DTypeError for bools, but for nearest.
/// Source: jax.image.resize.
inline constexpr struct SHARDARRAY_API resize_fn {
  [[nodiscard]] Array operator()(const Array& x, const Shape& shape, ResizeMethod method,
                                 bool antialias = true, Where w = Where::here()) const;
} resize{};

}  // namespace shardarray
