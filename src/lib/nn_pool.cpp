// Pooling layers.
#include <fmt/core.h>

#include <algorithm>

#include "base/count_text.h"
#include "lib/nn_example.h"
#include "ops/windows.h"
#include "shardarray/nn/pooling.h"

namespace shardarray::nn {

namespace {

constexpr const char* max_pool_names[] = {"nn::MaxPool1d", "nn::MaxPool2d", "nn::MaxPool3d"};
constexpr const char* avg_pool_names[] = {"nn::AvgPool1d", "nn::AvgPool2d", "nn::AvgPool3d"};
constexpr const char* adaptive_max_names[] = {"nn::AdaptiveMaxPool1d", "nn::AdaptiveMaxPool2d",
                                              "nn::AdaptiveMaxPool3d"};
constexpr const char* adaptive_avg_names[] = {"nn::AdaptiveAvgPool1d", "nn::AdaptiveAvgPool2d",
                                              "nn::AdaptiveAvgPool3d"};

/// Sizes, strides and padding as the functions take them, for one example of `dims` spatial dimensions.
struct PoolLayer {
  Shape window;
  PoolOptions options;
};
template <class Layer>
PoolLayer pool_layer(const char* name, const Layer& l, const Array& x, std::size_t dims) {
  need_example(name, x, dims);
  if (l.kernel_size.empty())
    throw ShapeError(
        fmt::format("{}: kernel_size is empty. It is a number for each of {}, or one for all. Give it.", name,
                    count_text(dims, "spatial dimension")));
  const Type& t = type_of(x);
  const Shape sizes(t.shape.begin() + 1, t.shape.end()),
      window = windows::per_dimension(name, "kernel_size", l.kernel_size, dims),
      stride = windows::per_dimension(name, "stride", l.stride, dims);
  windows::Widths widths = windows::widths_of(name, l.padding, sizes, window, stride);
  for (std::size_t d = 0; d < dims; d++) {
    auto& [lo, hi] = widths[d];
    const bool fits = std::max(lo, hi) <= window[d];
    if (fits && l.use_ceil && (sizes[d] + lo + hi - window[d]) % stride[d] != 0)
      hi = add_sizes(hi, stride[d]);
    if (std::max(lo, hi) > window[d])
      throw ShapeError(
          fmt::format("{}: padding {} and {} of a window of {}. There is no window in the padding alone. Use "
                      "less padding.",
                      name, lo, hi, count_text(window[d], "element")));
  }
  return {window, {.strides = stride, .padding = widths}};
}

Shape target_of(const Shape& given, int dims) {
  return given.size() == 1 ? Shape::filled(static_cast<std::size_t>(dims), given[0]) : given;
}

void need_target(const char* name, const Array& x, const Shape& target, std::size_t dims) {
  need_example(name, x, dims);
  const Type& t = type_of(x);
  bool fits = target.size() == dims;
  for (std::size_t d = 0; fits && d < dims; d++) fits = target[d] >= 1 && target[d] <= t.shape[d + 1];
  if (!fits)
    throw ShapeError(
        fmt::format("{}: x is {}, the target {}. There is a target size for each of {}, or one for all, from "
                    "1 to its own. Correct target_shape.",
                    name, to_string(t), to_string(target), count_text(dims, "spatial dimension")));
}

}  // namespace

template <int dims> Array MaxPool<dims>::operator()(const Array& x, Where w) const {
  constexpr const char* name = max_pool_names[dims - 1];
  const Site site(w, name);
  const PoolLayer l = pool_layer(name, *this, x, dims);
  Array y = max_pool(x, l.window, l.options);
  need_windows(name, x, y, l.window);
  return y;
}
template <int dims> Array AvgPool<dims>::operator()(const Array& x, Where w) const {
  constexpr const char* name = avg_pool_names[dims - 1];
  const Site site(w, name);
  const PoolLayer l = pool_layer(name, *this, x, dims);
  Array y = avg_pool(x, l.window, {.strides = l.options.strides, .padding = l.options.padding});
  need_windows(name, x, y, l.window);
  return y;
}
template <int dims> Array AdaptiveMaxPool<dims>::operator()(const Array& x, Where w) const {
  constexpr const char* name = adaptive_max_names[dims - 1];
  const Site site(w, name);
  const Shape target = target_of(target_shape, dims);
  need_target(name, x, target, dims);
  return adaptive_max_pool(x, target);
}
template <int dims> Array AdaptiveAvgPool<dims>::operator()(const Array& x, Where w) const {
  constexpr const char* name = adaptive_avg_names[dims - 1];
  const Site site(w, name);
  const Shape target = target_of(target_shape, dims);
  need_target(name, x, target, dims);
  return adaptive_avg_pool(x, target);
}

template struct MaxPool<1>;
template struct MaxPool<2>;
template struct MaxPool<3>;
template struct AvgPool<1>;
template struct AvgPool<2>;
template struct AvgPool<3>;
template struct AdaptiveMaxPool<1>;
template struct AdaptiveMaxPool<2>;
template struct AdaptiveMaxPool<3>;
template struct AdaptiveAvgPool<1>;
template struct AdaptiveAvgPool<2>;
template struct AdaptiveAvgPool<3>;

}  // namespace shardarray::nn
