// The arithmetic of the optimizers, leaf by leaf; formulas and order of operations are optax's.
#include "shardarray/optim.h"

#include <limits>

#include "base/host_memory.h"
#include "base/sizes.h"
#include "ops/record.h"
#include "shardarray/detail/maps.h"
#include "shardarray/ops.h"
#include "shardarray/placement.h"

namespace shardarray::optim::detail {

// Of what scales x.
static DType number_type(const Array& x) { return is_inexact(x.dtype()) ? x.dtype() : float32; }
// `v` in the dtype of x, rounded once: a literal would be rounded to float32 first.
static Array number(const Array& x, double v) {
  return primitive::constant(number_type(x), primitive::bits_of(number_type(x), v), true);
}

// Zeros where the parameter is, in memory of their own: recorded zeros of one shape would become one array
// with several owners, which cannot be donated.
static Array zeros_beside(const Array& a) {
  if (core::tracing()) return zeros_like(a);
  auto host_zeros = [&](const Shape& shape) {
    const std::vector<std::byte> bytes = host_bytes("optim", bytes_of(shape, a.dtype()));
    return core::make_array(bytes.data(), a.dtype(), shape, Where::here());
  };
  if (!a.committed()) return host_zeros(a.shape());
  auto piece = [&](const ShardIndex& index) {
    Shape shape = a.shape();
    for (std::size_t d = 0; d < shape.size(); d++)
      if (!index[d].whole) shape[d] = index[d].stop - index[d].start;
    return host_zeros(shape);
  };
  return core::from_callback(a.shape(), a.sharding(), piece, Where::here());
}

std::vector<Array> zeros_for(std::vector<Array> parameters) {
  for (Array& a : parameters) a = is_inexact_array(a) ? zeros_beside(a) : Array();
  return parameters;
}

Array zero_count(Where w) { return zeros({}, int32, w); }
Array next_count(const Array& count) {
  const Array last = primitive::constant(DType::int32, std::numeric_limits<std::int32_t>::max(), false);
  return where(count < last, count + 1, last);
}

Array minus_rate(double rate) {
  return primitive::constant(DType::float64, primitive::bits_of(DType::float64, -rate), true);
}
Array minus_rate(const Array& rate) { return -rate; }
// x * -rate in the dtype of x; whole numbers give float32.
static Array scaled(const Array& x, const Array& minus_rate) {
  return x * primitive::cast(minus_rate, number_type(x), true);
}

// 1 - b^t in float32, as optax computes it.
static Array correction(double b, const Array& t) {
  const Array power_of_b = power(
      primitive::constant(DType::float32, primitive::bits_of(DType::float32, b), false), t.astype(float32));
  return primitive::sub(primitive::like(power_of_b, 1), power_of_b);
}

Moments adam_update(const std::vector<Array>& grads, const std::vector<Array>& mu,
                    const std::vector<Array>& nu, const Array& count, const Array& minus_rate,
                    const AdamOptions& o) {
  const std::size_t n = grads.size();
  Moments r{std::vector<Array>(n), std::vector<Array>(n), std::vector<Array>(n)};
  const Array t = next_count(count);
  const Array c1 = correction(o.b1, t), c2 = correction(o.b2, t);
  for (std::size_t k = 0; k < n; k++) {
    const Array& g = grads[k];
    if (!g.has_value()) continue;
    r.mu[k] = number(g, 1 - o.b1) * g + number(g, o.b1) * mu[k];
    r.nu[k] = number(g, 1 - o.b2) * (g * g) + number(g, o.b2) * nu[k];
    const Array mean = r.mu[k] / c1.astype(r.mu[k].dtype()), square = r.nu[k] / c2.astype(r.nu[k].dtype());
    r.updates[k] = scaled(mean / (sqrt(square) + number(g, o.eps)), minus_rate);
  }
  return r;
}

Traces sgd_update(const std::vector<Array>& grads, const std::vector<Array>& trace, const Array& minus_rate,
                  const SgdOptions& o) {
  const std::size_t n = grads.size();
  Traces r{std::vector<Array>(n), std::vector<Array>(n)};
  for (std::size_t k = 0; k < n; k++) {
    const Array& g = grads[k];
    if (!g.has_value()) continue;
    Array direction = g;
    if (o.momentum != 0) {
      r.trace[k] = g + number(g, o.momentum) * trace[k];
      direction = o.nesterov ? g + number(g, o.momentum) * r.trace[k] : r.trace[k];
    }
    r.updates[k] = scaled(direction, minus_rate);
  }
  return r;
}

}  // namespace shardarray::optim::detail
