// Weight initializers, with names, defaults and bits of jax.nn.initializers. An initializer is a value, called with a key and a shape:
//
//     const Array weight = nn::initializers::he_normal()(key, {64, 32});
//
// They throw as random::normal: for an invalid key, negative sizes, a dtype that is not floating.
#pragma once
#include "shardarray/ops.h"

namespace shardarray::nn::initializers {

/// What to draw from: a normal truncated at 2 standard deviations, a normal, or a uniform distribution.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class Distribution : std::uint8_t { truncated_normal, normal, uniform };
/// What divides the variance: the number of inputs per output, of outputs per input, their mean, or their geometric mean.
enum class FanMode : std::uint8_t { fan_in, fan_out, fan_avg, fan_geo_avg };
#pragma GCC diagnostic pop
/// The roles of a weight's dimensions; the others are a window, all of whose elements count.
struct FanAxes {
  Shape in_axis = {-2};   ///< inputs
  Shape out_axis = {-1};  ///< outputs
  Shape batch_axis = {};  ///< separate weights
};

/// Zeros and ones; the key is unused.
inline constexpr struct SHARDARRAY_API zeros_fn {
  [[nodiscard]] Array operator()(const Array& key, const Shape& shape, DType dtype = float32,
                                 Where w = Where::here()) const;
} zeros{};
inline constexpr struct SHARDARRAY_API ones_fn {
  [[nodiscard]] Array operator()(const Array& key, const Shape& shape, DType dtype = float32,
                                 Where w = Where::here()) const;
} ones{};
/// One value everywhere.
struct SHARDARRAY_API Constant {
  double value = 0;
  [[nodiscard]] Array operator()(const Array& key, const Shape& shape, DType dtype = float32,
                                 Where w = Where::here()) const;
};
[[nodiscard]] inline Constant constant(double value) { return {value}; }

/// `scale` times a draw: uniform in [0, 1), standard normal, or standard normal between lower and upper (float16 and bfloat16 via
/// float32).
struct SHARDARRAY_API Scaled {
  Distribution distribution = Distribution::normal;
  double scale = 1e-2;
  double lower = -2, upper = 2;  ///< of truncated_normal
  [[nodiscard]] Array operator()(const Array& key, const Shape& shape, DType dtype = float32,
                                 Where w = Where::here()) const;
};
[[nodiscard]] inline Scaled uniform(double scale = 1e-2) { return {Distribution::uniform, scale}; }
[[nodiscard]] inline Scaled normal(double stddev = 1e-2) { return {Distribution::normal, stddev}; }
[[nodiscard]] inline Scaled truncated_normal(double stddev = 1e-2, double lower = -2, double upper = 2) {
  return {Distribution::truncated_normal, stddev, lower, upper};
}

/// Mean 0 and variance scale / fan. Throws ShapeError for axes that the shape lacks: for a vector, even the default ones.
struct SHARDARRAY_API VarianceScaling {
  double scale = 1;
  FanMode mode = FanMode::fan_in;
  Distribution distribution = Distribution::truncated_normal;
  FanAxes axes = {};
  [[nodiscard]] Array operator()(const Array& key, const Shape& shape, DType dtype = float32,
                                 Where w = Where::here()) const;
};
[[nodiscard]] inline VarianceScaling variance_scaling(double scale, FanMode mode, Distribution distribution,
                                                      const FanAxes& axes = {}) {
  return {scale, mode, distribution, axes};
}
/// Scale 1 over the mean of both fans (X. Glorot, Y. Bengio, 2010; also called xavier), 1 over the input fan (Y. LeCun et al., 1998), 2
/// over the input fan (K. He et al., 2015; also called kaiming). The normal ones are truncated.
[[nodiscard]] inline VarianceScaling glorot_uniform(const FanAxes& axes = {}) {
  return {1, FanMode::fan_avg, Distribution::uniform, axes};
}
[[nodiscard]] inline VarianceScaling glorot_normal(const FanAxes& axes = {}) {
  return {1, FanMode::fan_avg, Distribution::truncated_normal, axes};
}
[[nodiscard]] inline VarianceScaling lecun_uniform(const FanAxes& axes = {}) {
  return {1, FanMode::fan_in, Distribution::uniform, axes};
}
[[nodiscard]] inline VarianceScaling lecun_normal(const FanAxes& axes = {}) {
  return {1, FanMode::fan_in, Distribution::truncated_normal, axes};
}
[[nodiscard]] inline VarianceScaling he_uniform(const FanAxes& axes = {}) {
  return {2, FanMode::fan_in, Distribution::uniform, axes};
}
[[nodiscard]] inline VarianceScaling he_normal(const FanAxes& axes = {}) {
  return {2, FanMode::fan_in, Distribution::truncated_normal, axes};
}
[[nodiscard]] inline VarianceScaling xavier_uniform(const FanAxes& axes = {}) { return glorot_uniform(axes); }
[[nodiscard]] inline VarianceScaling xavier_normal(const FanAxes& axes = {}) { return glorot_normal(axes); }
[[nodiscard]] inline VarianceScaling kaiming_uniform(const FanAxes& axes = {}) { return he_uniform(axes); }
[[nodiscard]] inline VarianceScaling kaiming_normal(const FanAxes& axes = {}) { return he_normal(axes); }

}  // namespace shardarray::nn::initializers
