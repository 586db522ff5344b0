// Pooling: reduces each window sliding over the last dimensions of an array. Names as in Equinox and flax, values of
// jax.lax.reduce_window.
#pragma once
#include "shardarray/convolution.h"

namespace shardarray {

/// Options of max_pool, min_pool and sum_pool. Lists have one number per window dimension, or one for all; empty: 1.
struct PoolOptions {
  Shape strides = {};    ///< from window to window
  Padding padding = {};  ///< default: none
  Shape dilation = {};   ///< distance of elements within a window
};
/// Options of avg_pool.
struct AvgPoolOptions {
  Shape strides = {};         ///< from window to window
  Padding padding = {};       ///< default: none
  Shape dilation = {};        ///< distance of elements within a window
  bool count_padding = true;  ///< padding enters the mean as zeros; false: only elements of the array count
};

// [batch.., spatial..] with a window size per spatial dimension -> [batch.., windows..]. Windows that do not fit are dropped; if none
// fits, the result is empty. Throw ShapeError for a window without dimensions, with more than the array has or with sizes below 1, and
// for strides and widths that do not fit; DTypeError for bools; Error for an invalid padding rule. Complex numbers are ordered as in
// complex.h.

/// The largest (smallest) element; NaN if there is one. Padding is below (above) all elements. Among equal ones the first gets the
/// gradient, as in JAX.
inline constexpr struct SHARDARRAY_API max_pool_fn {
  [[nodiscard]] Array operator()(const Array& x, const Shape& window, const PoolOptions& o = {},
                                 Where w = Where::here()) const;
} max_pool{};
inline constexpr struct SHARDARRAY_API min_pool_fn {
  [[nodiscard]] Array operator()(const Array& x, const Shape& window, const PoolOptions& o = {},
                                 Where w = Where::here()) const;
} min_pool{};
/// The sum; 16-bit floats are accumulated in float32, integers wrap.
inline constexpr struct SHARDARRAY_API sum_pool_fn {
  [[nodiscard]] Array operator()(const Array& x, const Shape& window, const PoolOptions& o = {},
                                 Where w = Where::here()) const;
} sum_pool{};
/// The mean, floating. For a window entirely in the padding 0, or NaN if padding does not count.
inline constexpr struct SHARDARRAY_API avg_pool_fn {
  [[nodiscard]] Array operator()(const Array& x, const Shape& window, const AvgPoolOptions& o = {},
                                 Where w = Where::here()) const;
} avg_pool{};

// [batch.., spatial..] -> [batch.., shape..]: the last dimensions are divided into this many adjacent windows, the first ones one longer
// if sizes are not divisible, as in Equinox. Throw ShapeError for more dimensions than the array has, and for sizes that are not from 1
// to the array's; DTypeError as above.

/// The largest element of each window; equal ones share the gradient, as in Equinox.
inline constexpr struct SHARDARRAY_API adaptive_max_pool_fn {
  [[nodiscard]] Array operator()(const Array& x, const Shape& shape, Where w = Where::here()) const;
} adaptive_max_pool{};
/// The mean of each window, floating.
inline constexpr struct SHARDARRAY_API adaptive_avg_pool_fn {
  [[nodiscard]] Array operator()(const Array& x, const Shape& shape, Where w = Where::here()) const;
} adaptive_avg_pool{};

}  // namespace shardarray
