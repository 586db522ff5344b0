// Window functions for signals: NumPy's names. [n], floating (float32 by default), computed in float64 and rounded once; a single element
// is 1. All throw ShapeError for n < 0, DTypeError for a dtype that is not floating.
#pragma once
#include "shardarray/ops.h"

namespace shardarray {

/// The triangular window: from 0 to 1 to 0.
[[nodiscard]] SHARDARRAY_API Array bartlett(std::int64_t n, DType dtype = float32, Where w = Where::here());
/// 0.5 - 0.5 cos a, 0.54 - 0.46 cos a and 0.42 - 0.5 cos a + 0.08 cos 2a with a = 2 pi k / (n - 1).
[[nodiscard]] SHARDARRAY_API Array hanning(std::int64_t n, DType dtype = float32, Where w = Where::here());
[[nodiscard]] SHARDARRAY_API Array hamming(std::int64_t n, DType dtype = float32, Where w = Where::here());
[[nodiscard]] SHARDARRAY_API Array blackman(std::int64_t n, DType dtype = float32, Where w = Where::here());
/// i0(beta sqrt(1 - t^2)) / i0(beta), t from -1 to 1.
[[nodiscard]] SHARDARRAY_API Array kaiser(std::int64_t n, double beta, DType dtype = float32,
                                          Where w = Where::here());

}  // namespace shardarray
