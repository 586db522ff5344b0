// Pooling layers as plain structs, with Equinox's names and values: `nn::MaxPool2d{{2}, {2}}`. They take one example; use vmap for
// batches.
#pragma once
#include "shardarray/pooling.h"

namespace shardarray::nn {

// [channels, spatial..] -> [channels, windows..]. Lists have one number per spatial dimension, or one for all. Throw ShapeError for
// another rank, for more padding than window elements and if no window fits (Equinox: an empty result), and as max_pool.

/// The largest element of each window.
template <int dims> struct SHARDARRAY_API MaxPool {
  Shape kernel_size;
  Shape stride = {};  ///< empty: 1
  Padding padding = {};
  bool use_ceil = false;  ///< one more window, into the padding at the end, if elements are left over
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const;
};
using MaxPool1d = MaxPool<1>;
using MaxPool2d = MaxPool<2>;
using MaxPool3d = MaxPool<3>;

/// The sum of each window divided by its size, including padding.
template <int dims> struct SHARDARRAY_API AvgPool {
  Shape kernel_size;
  Shape stride = {};  ///< empty: 1
  Padding padding = {};
  bool use_ceil = false;  ///< one more window, into the padding at the end, if elements are left over
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const;
};
using AvgPool1d = AvgPool<1>;
using AvgPool2d = AvgPool<2>;
using AvgPool3d = AvgPool<3>;

// [channels, spatial..] -> [channels, target_shape..]. Throw ShapeError as adaptive_max_pool.

/// adaptive_max_pool to a fixed shape.
template <int dims> struct SHARDARRAY_API AdaptiveMaxPool {
  Shape target_shape;
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const;
};
using AdaptiveMaxPool1d = AdaptiveMaxPool<1>;
using AdaptiveMaxPool2d = AdaptiveMaxPool<2>;
using AdaptiveMaxPool3d = AdaptiveMaxPool<3>;

/// adaptive_avg_pool to a fixed shape.
template <int dims> struct SHARDARRAY_API AdaptiveAvgPool {
  Shape target_shape;
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const;
};
using AdaptiveAvgPool1d = AdaptiveAvgPool<1>;
using AdaptiveAvgPool2d = AdaptiveAvgPool<2>;
using AdaptiveAvgPool3d = AdaptiveAvgPool<3>;

extern template struct MaxPool<1>;
extern template struct MaxPool<2>;
extern template struct MaxPool<3>;
extern template struct AvgPool<1>;
extern template struct AvgPool<2>;
extern template struct AvgPool<3>;
extern template struct AdaptiveMaxPool<1>;
extern template struct AdaptiveMaxPool<2>;
extern template struct AdaptiveMaxPool<3>;
extern template struct AdaptiveAvgPool<1>;
extern template struct AdaptiveAvgPool<2>;
extern template struct AdaptiveAvgPool<3>;

}  // namespace shardarray::nn
