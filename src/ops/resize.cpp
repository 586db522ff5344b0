// resize: multiplies each dimension by a matrix of weights, computed from positions.
#include "shardarray/image.h"

#include <fmt/core.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "ops/api.h"
#include "ops/complex.h"

namespace shardarray {

namespace {

/// Weights by non-negative distances. Sources: R. G. Keys, Cubic convolution interpolation for digital image processing, 1981 (a = -0.5);
/// C. E. Duchon, Lanczos filtering in one and two dimensions, 1979.
Array resize_kernel(ResizeMethod method, const Array& x) {
  if (method == ResizeMethod::linear) return maximum(0, 1 - x);
  if (method == ResizeMethod::cubic) {
    const Array near = (1.5 * x - 2.5) * x * x + 1, behind = ((-0.5 * x + 2.5) * x - 4) * x + 2;
    return where(x >= 2, 0, where(x >= 1, behind, near));
  }
  const double radius = method == ResizeMethod::lanczos3 ? 3 : 5, pi = std::numbers::pi;
  const Array is_apart = x > 1e-3, safe = where(is_apart, x, 1);
  const Array waves = radius * (sin(pi * x) * sin(pi / radius * x));
  return where(x > radius, 0, where(is_apart, waves / (pi * pi * (safe * safe)), 1));
}

/// [to, from]: the weights of each new element.
Array resize_weights(ResizeMethod method, std::int64_t from, std::int64_t to, bool antialias, DType t) {
  const double inverse = static_cast<double>(from) / static_cast<double>(to);
  const Array target = primitive::cast(primitive::iota({to, from}, 0, DType::int32), t),
              source = primitive::cast(primitive::iota({to, from}, 1, DType::int32), t);
  Array distance = abs((target + 0.5) * inverse - 0.5 - source);
  if (antialias && inverse > 1) distance = distance / inverse;
  const Array weights = resize_kernel(method, distance), total = sum(weights, {.axis = 1, .keepdims = true});
  // as in JAX: rows with almost no weight become 0
  const Array counts = abs(total) > 1000 * double{std::numeric_limits<float>::epsilon()};
  return where(counts, weights / where(counts, total, 1), 0);
}

/// Nearest neighbour; its position is computed in float32, as in JAX.
Array nearest_along(const Array& x, std::size_t dim, std::int64_t to) {
  const Array places = primitive::cast(primitive::iota({to}, 0, DType::int32), DType::float32);
  const Array middle = (places + 0.5) * static_cast<double>(x.shape()[dim]) / static_cast<double>(to);
  return take(x, primitive::cast(middle, DType::int32), static_cast<std::int64_t>(dim), TakeMode::clip);
}

/// Multiplies floats by the weights, one dimension after the other.
Array resized(const Array& x, const Shape& shape, ResizeMethod method, bool antialias) {
  if (is_complex(x.dtype()))
    return primitive::pair(resized(primitive::real(x), shape, method, antialias),
                           resized(primitive::imag(x), shape, method, antialias));
  Array r = x;
  std::string in;
  for (std::size_t k = 0; k < shape.size(); k++) in += static_cast<char>(k < 26 ? 'a' + k : 'A' + (k - 26));
  for (std::size_t d = 0; d < shape.size(); d++) {
    if (shape[d] == x.shape()[d]) continue;
    if (shape[d] == 0) {
      r = primitive::slice_dim(r, d, 0, 0);
      continue;
    }
    std::string out = in;
    out[d] = '0';
    const Array weights = resize_weights(method, x.shape()[d], shape[d], antialias, x.dtype());
    r = primitive::dot(in + ",0" + in[d] + "->" + out, r, weights);
  }
  return r;
}

void need_sizes(const Array& x, const Shape& shape) {
  const Type& t = type_of(x, "resize");
  bool fits = shape.size() == t.shape.size();
  for (std::size_t d = 0; fits && d < shape.size(); d++)
    fits = shape[d] >= 0 && (t.shape[d] > 0 || shape[d] == 0);
  if (!fits)
    throw ShapeError(
        fmt::format("resize: {} to {}. There is a size for each dimension, not negative, and 0 where there "
                    "is nothing. Give all sizes.",
                    to_string(t), to_string(shape)));
}

}  // namespace

Array resize_fn::operator()(const Array& x, const Shape& shape, ResizeMethod method, bool antialias,
                            Where w) const {
  const Site site(w, "resize");
  need_sizes(x, shape);
  Array y = x;
  if (method == ResizeMethod::nearest) {
    for (std::size_t d = 0; d < shape.size(); d++)
      if (shape[d] != x.shape()[d]) y = nearest_along(y, d, shape[d]);
    return y;
  }
  api::need_numbers("resize", x);
  const WeakType t = api::to_inexact(api::weak_type_of(x, "resize"));
  return api::rounded_once(
      t, [&](const Array& v) { return resized(v, shape, method, antialias); }, x);
}

}  // namespace shardarray
