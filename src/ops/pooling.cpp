// Pooling: one dimension after the other, the last one first, by combining slices. Order is preserved, so that of equal extrema the first
// in window order counts.
#include "shardarray/pooling.h"

#include <fmt/core.h>

#include <limits>
#include <vector>

#include "ops/windows.h"

namespace shardarray {

namespace {

/// Combines two neighbours, in order.
using CombinePool = Array (*)(const Array& a, const Array& b);

/// Combines windows along a dimension from left to right; long ones are built from windows of 1, 2, 4, ... elements.
Array pooled_along(const Array& x, std::size_t dim, std::int64_t window, std::int64_t stride,
                   std::int64_t dilation, CombinePool combine) {
  constexpr std::int64_t few = 16;
  const std::int64_t size = x.shape()[dim], over = windows::reach(window, dilation);
  if (size < over) return primitive::slice_dim(x, dim, 0, 0);
  const std::int64_t count = (size - over) / stride + 1;
  const auto every = [&](const Array& of, std::int64_t first, std::int64_t step, std::int64_t n) {
    Shape lo = Shape::filled(x.shape().size(), 0), hi = x.shape(), by = Shape::filled(lo.size(), 1);
    lo[dim] = first;
    hi[dim] = first + (n - 1) * step + 1;
    by[dim] = step;
    return primitive::slice(of, lo, hi, by);
  };
  if (window <= few) {
    Array r = every(x, 0, stride, count);
    for (std::int64_t k = 1; k < window; k++) r = combine(r, every(x, k * dilation, stride, count));
    return r;
  }
  std::vector<Array> powers{x};
  for (std::int64_t n = 1; 2 * n <= window; n *= 2) {
    const Array& half = powers.back();
    const std::int64_t left = half.shape()[dim] - n * dilation;
    powers.push_back(combine(every(half, 0, 1, left), every(half, n * dilation, 1, left)));
  }
  Array r;
  for (std::size_t k = powers.size(), first = 0; k-- > 0;) {
    const std::size_t n = std::size_t{1} << k;
    if (!(static_cast<std::size_t>(window) & n)) continue;
    const Array part = every(powers[k], static_cast<std::int64_t>(first) * dilation, stride, count);
    r = r.has_value() ? combine(r, part) : part;
    first += n;
  }
  return r;
}

void need_pooled(const char* function, const Array& x, const Shape& window) {
  const Type& t = type_of(x, function);
  bool fits = !window.empty() && window.size() <= t.shape.size();
  for (const std::int64_t n : window) fits = fits && n >= 1;
  if (!fits)
    throw ShapeError(fmt::format(
        "{}: a window {} over {}. It has a size of 1 or more for each of the last dimensions, which may be "
        "all. Correct the window.",
        function, to_string(window), to_string(t)));
  api::need_numbers(function, x);
}

struct PoolWindows {
  Shape dims, window, stride, dilation;  // of the spatial dimensions
  windows::Widths widths;
};
PoolWindows pool_windows(const char* function, const Array& x, const Shape& window, const PoolOptions& o) {
  need_pooled(function, x, window);
  const std::size_t rank = x.shape().size(), n = window.size();
  PoolWindows p{{},
                window,
                windows::per_dimension(function, "strides", o.strides, n),
                windows::per_dimension(function, "dilation", o.dilation, n),
                {}};
  Shape sizes, reaches;
  for (std::size_t d = 0; d < n; d++) {
    p.dims.push_back(static_cast<std::int64_t>(rank - n + d));
    sizes.push_back(x.shape()[rank - n + d]);
    reaches.push_back(windows::reach(window[d], p.dilation[d]));
  }
  p.widths = windows::widths_of(function, o.padding, sizes, reaches, p.stride);
  return p;
}

/// Pads x with `outside`, each dimension just before its windows are applied: until then the other dimensions keep their sharding.
Array pooled(const char* function, const Array& x, const PoolWindows& p, std::uint64_t outside,
             CombinePool combine) {
  Array y = x;
  for (std::size_t d = p.dims.size(); d-- > 0;) {
    y = windows::surrounded(function, y, {p.dims[d]}, {p.widths[d]}, {1}, outside);
    y = pooled_along(y, static_cast<std::size_t>(p.dims[d]), p.window[d], p.stride[d], p.dilation[d],
                     combine);
  }
  return y;
}

// NaN wins; of equal elements the first. Complex numbers may compare although a part is NaN.
template <bool most> Array first_extremum(const Array& a, const Array& b) {
  Array is_first = primitive::binary(most ? op_ge : op_le, a, b);
  if (is_complex(a.dtype())) is_first = primitive::binary(op_and, is_first, primitive::binary(op_eq, b, b));
  if (is_inexact(a.dtype())) is_first = primitive::binary(op_or, is_first, primitive::binary(op_ne, a, a));
  return primitive::select(is_first, a, b);
}

template <bool most>
Array extremum_pool(const char* function, const Array& x, const Shape& window, const PoolOptions& o) {
  const PoolWindows p = pool_windows(function, x, window, o);
  constexpr double infinity = std::numeric_limits<double>::infinity();  // for integers: lowest and highest
  return pooled(function, x, p, primitive::bits_of(x.dtype(), most ? -infinity : infinity),
                first_extremum<most>);
}

Array summed_pool(const char* function, const Array& x, const PoolWindows& p) {
  return pooled(function, x, p, 0, primitive::add);
}

/// Splits a dimension into `count` adjacent windows and reduces each.
Array adapted_along(const Array& x, std::size_t dim, std::int64_t count, Reducer reducer) {
  const std::int64_t size = x.shape()[dim], each = size / count, longer = size % count;
  std::vector<Array> parts;
  const auto add = [&](std::int64_t first, std::int64_t n, std::int64_t length) {
    if (n == 0) return;
    Shape shape = x.shape();
    shape[dim] = n;
    shape.insert(dim + 1, length);
    const Array lines = primitive::reshape(primitive::slice_dim(x, dim, first, first + n * length), shape);
    const Array r = primitive::reduce(reducer, lines, {static_cast<std::int64_t>(dim) + 1});
    parts.push_back(
        reducer == Reducer::sum ? primitive::div(r, primitive::like(r, static_cast<double>(length))) : r);
  };
  add(0, longer, each + 1);
  add(longer * (each + 1), count - longer, each);
  return primitive::concatenate(parts, dim);
}

Array adapted(const char* function, const Array& x, const Shape& shape, Reducer reducer) {
  const Type& t = type_of(x, function);
  const std::size_t rank = t.shape.size(), first = rank - std::min(rank, shape.size());
  bool fits = !shape.empty() && shape.size() <= rank;
  for (std::size_t d = 0; fits && d < shape.size(); d++)
    fits = shape[d] >= 1 && shape[d] <= t.shape[first + d];
  if (!fits)
    throw ShapeError(fmt::format(
        "{}: {} to {}. Each of the last dimensions gets a size from 1 to its own. Correct the shape.",
        function, to_string(t), to_string(shape)));
  api::need_numbers(function, x);
  Array y = x;
  for (std::size_t d = 0; d < shape.size(); d++) y = adapted_along(y, first + d, shape[d], reducer);
  return y;
}

}  // namespace

Array max_pool_fn::operator()(const Array& x, const Shape& window, const PoolOptions& o, Where w) const {
  const Site site(w, "max_pool");
  return extremum_pool<true>("max_pool", x, window, o);
}
Array min_pool_fn::operator()(const Array& x, const Shape& window, const PoolOptions& o, Where w) const {
  const Site site(w, "min_pool");
  return extremum_pool<false>("min_pool", x, window, o);
}
Array sum_pool_fn::operator()(const Array& x, const Shape& window, const PoolOptions& o, Where w) const {
  const Site site(w, "sum_pool");
  const PoolWindows p = pool_windows("sum_pool", x, window, o);
  return api::rounded_once(
      api::weak_type_of(x, "sum_pool"), [&](const Array& v) { return summed_pool("sum_pool", v, p); }, x);
}
Array avg_pool_fn::operator()(const Array& x, const Shape& window, const AvgPoolOptions& o, Where w) const {
  const Site site(w, "avg_pool");
  const PoolWindows p = pool_windows("avg_pool", x, window, {o.strides, o.padding, o.dilation});
  const auto mean = [&](const Array& v) {
    const Array sum = summed_pool("avg_pool", v, p);
    if (o.count_padding)
      return primitive::div(sum, primitive::like(sum, static_cast<double>(num_elements(window))));
    const std::size_t first = v.shape().size() - window.size();
    PoolWindows of_ones = p;
    Shape spatial;
    for (std::size_t d = 0; d < window.size(); d++) {
      of_ones.dims[d] = static_cast<std::int64_t>(d);
      spatial.push_back(v.shape()[first + d]);
    }
    const Array count = summed_pool("avg_pool", primitive::full(spatial, v.dtype(), 1), of_ones);
    return primitive::div(sum, primitive::broadcast_to(count, sum.shape()));
  };
  return api::rounded_once(api::to_inexact(api::weak_type_of(x, "avg_pool")), mean, x);
}

Array adaptive_max_pool_fn::operator()(const Array& x, const Shape& shape, Where w) const {
  const Site site(w, "adaptive_max_pool");
  return adapted("adaptive_max_pool", x, shape, Reducer::max);
}
Array adaptive_avg_pool_fn::operator()(const Array& x, const Shape& shape, Where w) const {
  const Site site(w, "adaptive_avg_pool");
  api::need_numbers("adaptive_avg_pool", x);
  const auto mean = [&](const Array& v) { return adapted("adaptive_avg_pool", v, shape, Reducer::sum); };
  return api::rounded_once(api::to_inexact(api::weak_type_of(x, "adaptive_avg_pool")), mean, x);
}

}  // namespace shardarray
