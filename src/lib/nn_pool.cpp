// Pooling layers.
#include <fmt/core.h>

#include <algorithm>

#include "ops/windows.h"
#include "shardarray/nn/pooling.h"

namespace shardarray::nn {

namespace {

/// Sizes, strides and padding as the functions take them, for one example of `dims` spatial dimensions.
struct PoolLayer {
  Shape window;
  PoolOptions options;
};
template <class Layer>
PoolLayer pool_layer(const char* name, const Layer& l, const Array& x, std::size_t dims) {
  const Type& t = type_of(x, name);
  if (t.shape.size() != dims + 1)
    throw ShapeError(fmt::format(
        "{}: x is {}. A layer takes one example of rank {}: channels and {} spatial dimensions. Batch with "
        "vmap(model)(x).",
        name, to_string(t), dims + 1, dims));
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
          fmt::format("{}: padding {} and {} of a window of {} elements. There is no window in the padding "
                      "alone. Use less "
                      "padding.",
                      name, lo, hi, window[d]));
  }
  return {window, {.strides = stride, .padding = widths}};
}

Shape target_of(const Shape& given, int dims) {
  return given.size() == 1 ? Shape::filled(static_cast<std::size_t>(dims), given[0]) : given;
}

void need_target(const char* name, const Array& x, const Shape& target, int dims) {
  const Type& t = type_of(x, name);
  if (t.shape.size() != static_cast<std::size_t>(dims) + 1 || target.size() != static_cast<std::size_t>(dims))
    throw ShapeError(
        fmt::format("{}: x is {}, the target {}. A layer takes one example: channels and {} spatial "
                    "dimensions, with a target "
                    "size for each, or one for all. Batch with vmap(model)(x).",
                    name, to_string(t), to_string(target), dims));
}

}  // namespace

template <int dims> Array MaxPool<dims>::operator()(const Array& x, Where w) const {
  const Site site(w, "nn::MaxPool");
  const PoolLayer l = pool_layer("nn::MaxPool", *this, x, dims);
  return max_pool(x, l.window, l.options);
}
template <int dims> Array AvgPool<dims>::operator()(const Array& x, Where w) const {
  const Site site(w, "nn::AvgPool");
  const PoolLayer l = pool_layer("nn::AvgPool", *this, x, dims);
  return avg_pool(x, l.window, {.strides = l.options.strides, .padding = l.options.padding});
}
template <int dims> Array AdaptiveMaxPool<dims>::operator()(const Array& x, Where w) const {
  const Site site(w, "nn::AdaptiveMaxPool");
  const Shape target = target_of(target_shape, dims);
  need_target("nn::AdaptiveMaxPool", x, target, dims);
  return adaptive_max_pool(x, target);
}
template <int dims> Array AdaptiveAvgPool<dims>::operator()(const Array& x, Where w) const {
  const Site site(w, "nn::AdaptiveAvgPool");
  const Shape target = target_of(target_shape, dims);
  need_target("nn::AdaptiveAvgPool", x, target, dims);
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
