#include "shardarray/nn/initializers.h"

#include <fmt/core.h>

#include <cmath>

#include "lib/random_bits.h"
#include "lib/random_floats.h"
#include "ops/api.h"
#include "shardarray/random.h"

namespace shardarray::nn::initializers {

namespace {

constexpr const char* function = "nn::initializers";

void check(const Array& key, DType t) {
  random::check_key(key, function);
  random::need_floating(t, function);
}

// Drawn in the dtype itself, except for truncated normals of 16 bits.
Array drawn(Distribution d, const Array& key, const Shape& shape, DType t, double lower, double upper) {
  if (d == Distribution::normal) return random::normal(key, shape, t);
  if (d == Distribution::uniform) return random::uniform(key, shape, t, lower, upper);
  const DType wide = api::computed(t);
  return random::truncated_normal(key, lower, upper, shape, wide).astype(t);
}

double size_of(const Shape& shape, const Shape& axes) {
  double n = 1;
  for (const std::int64_t a : axes) n *= static_cast<double>(shape[api::axis_of(function, a, shape)]);
  return n;
}

}  // namespace

Array zeros_fn::operator()(const Array& key, const Shape& shape, DType dtype, Where w) const {
  return Constant{0}(key, shape, dtype, w);
}
Array ones_fn::operator()(const Array& key, const Shape& shape, DType dtype, Where w) const {
  return Constant{1}(key, shape, dtype, w);
}
Array Constant::operator()(const Array& key, const Shape& shape, DType dtype, Where w) const {
  const Site site(w, function);
  check(key, dtype);
  return full(shape, value, dtype);
}

Array Scaled::operator()(const Array& key, const Shape& shape, DType dtype, Where w) const {
  const Site site(w, function);
  check(key, dtype);
  const bool is_uniform = distribution == Distribution::uniform;
  return drawn(distribution, key, shape, dtype, is_uniform ? 0 : lower, is_uniform ? 1 : upper) *
         random::scalar(dtype, scale);
}

Array VarianceScaling::operator()(const Array& key, const Shape& shape, DType dtype, Where w) const {
  const Site site(w, function);
  check(key, dtype);
  if (shape.size() < 2 && axes.in_axis == Shape{-2})
    throw ShapeError(
        fmt::format("{}: shape {}. The variance depends on the numbers of inputs and outputs, the last two "
                    "dimensions. Give two, or say {{.in_axis = ..}}.",
                    function, to_string(shape)));
  const double inputs = size_of(shape, axes.in_axis), outputs = size_of(shape, axes.out_axis);
  const auto elements = static_cast<double>(num_elements(shape));
  if (elements == 0) return shardarray::zeros(shape, dtype);
  const double window = elements / inputs / outputs / size_of(shape, axes.batch_axis),
               fan_in = inputs * window, fan_out = outputs * window;
  const double fan = mode == FanMode::fan_in    ? fan_in
                     : mode == FanMode::fan_out ? fan_out
                     : mode == FanMode::fan_avg ? (fan_in + fan_out) / 2
                                                : std::sqrt(fan_in * fan_out);
  // Rounded to the dtype after every step, as in JAX.
  const Array variance = random::scalar(dtype, scale / fan);
  Array factor = sqrt(distribution == Distribution::uniform ? 3.0 * variance : variance);
  if (distribution == Distribution::truncated_normal)
    factor = factor / random::scalar(dtype, .87962566103423978);  // deviation of a normal truncated to +-2
  const bool is_uniform = distribution == Distribution::uniform;
  return drawn(distribution, key, shape, dtype, is_uniform ? -1 : -2, is_uniform ? 1 : 2) * factor;
}

}  // namespace shardarray::nn::initializers
