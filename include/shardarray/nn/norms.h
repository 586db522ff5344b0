// Normalisations. They are computed in float32 (float64 of float64) and rounded once to the dtype of x, which is floating, else
// DTypeError. Weights begin as ones, biases as zeros.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shardarray/collectives.h"
#include "shardarray/nn/layers.h"

namespace shardarray::nn {

/// Options of LayerNorm::init() and RMSNorm::init().
struct LayerNormOptions {
  double eps = 1e-5;
  bool use_weight = true;  ///< false: weight is absent
  bool use_bias = true;    ///< false: bias is absent
  DType dtype = float32;   ///< of weight and bias
};
/// (x - mean) / sqrt(variance + eps) * weight + bias, over the whole of x. Source: J. L. Ba et al. (2016).
struct SHARDARRAY_API LayerNorm {
  Shape shape;  ///< of x
  double eps = 1e-5;
  Array weight;  ///< [shape..]; absent: 1
  Array bias;    ///< [shape..]; absent: 0
  /// Throws ShapeError for a negative size.
  [[nodiscard]] static LayerNorm init(const Shape& shape, const LayerNormOptions& o = {},
                                      Where w = Where::here());
  template <std::integral I>
  [[nodiscard]] static LayerNorm init(I size, const LayerNormOptions& o = {}, Where w = Where::here()) {
    return init(Shape{to_int64(size)}, o, w);
  }
  /// [shape..] -> [shape..]. Throws ShapeError for another shape: batch with vmap.
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const;
};
/// x / sqrt(mean(x^2) + eps) * weight + bias, over the whole of x. Source: B. Zhang, R. Sennrich (2019).
struct SHARDARRAY_API RMSNorm {
  Shape shape;  ///< of x
  double eps = 1e-5;
  Array weight;  ///< [shape..]; absent: 1
  Array bias;    ///< [shape..]; absent: 0
  /// Throws ShapeError for a negative size.
  [[nodiscard]] static RMSNorm init(const Shape& shape, const LayerNormOptions& o = {},
                                    Where w = Where::here());
  template <std::integral I>
  [[nodiscard]] static RMSNorm init(I size, const LayerNormOptions& o = {}, Where w = Where::here()) {
    return init(Shape{to_int64(size)}, o, w);
  }
  /// [shape..] -> [shape..]. Throws ShapeError for another shape: batch with vmap.
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const;
};

/// Options of GroupNorm::init().
struct GroupNormOptions {
  double eps = 1e-5;
  bool channelwise_affine = true;  ///< false: weight and bias are absent
  DType dtype = float32;           ///< of weight and bias
};
/// LayerNorm of each group of channels, with a weight and a bias for each channel. Source: Y. Wu, K. He (2018).
struct SHARDARRAY_API GroupNorm {
  std::int64_t groups = 1;
  double eps = 1e-5;
  Array weight;  ///< [channels]; absent: 1
  Array bias;    ///< [channels]; absent: 0
  /// Throws ShapeError unless there is a group at least, the groups divide the channels, and channels are given for weights.
  [[nodiscard]] static GroupNorm init(std::int64_t groups,
                                      std::optional<std::int64_t> channels = std::nullopt,
                                      const GroupNormOptions& o = {}, Where w = Where::here());
  /// [channels, d..] -> [channels, d..]. Throws ShapeError for a scalar and for channels that do not fit.
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const;
};

/// How BatchNorm uses what it has seen. batch: training uses the batch alone, inference the running statistics. ema: both use the
/// running ones.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class BatchNormMode : std::uint8_t { batch, ema };
#pragma GCC diagnostic pop
/// Options of BatchNorm::init().
struct BatchNormOptions {
  double eps = 1e-5;
  bool channelwise_affine = true;  ///< false: weight and bias are absent
  /// What the running statistics keep of themselves in a step, from 0 to 1; in mode batch less than 1.
  double momentum = 0.99;
  bool inference = false;                     ///< see inference_mode()
  DType dtype = float32;                      ///< of weight, bias and state
  BatchNormMode mode = BatchNormMode::batch;  ///< Equinox's default is ema, of which it warns
};
/// What BatchNorm has seen: a value that a call takes and gives.
struct BatchNormState {
  Array count;  ///< int32: of how many batches
  Array mean;   ///< [channels], of the running statistics
  Array var;    ///< [channels]
};
/// (x - mean) / sqrt(variance + eps) * weight + bias with one mean and variance for each channel, over the rest of x and over the
/// named axes of the maps around it:
///
///     auto [y, next] = vmap(norm, {.in_axes = {0, none}, .out_axes = {0, none}, .axis_name = "batch"})(x, state);
///
/// Source: S. Ioffe, C. Szegedy (2015).
struct SHARDARRAY_API BatchNorm {
  Array weight;                        ///< [channels]; absent: 1
  Array bias;                          ///< [channels]; absent: 0
  std::vector<std::string> axis_name;  ///< of the maps that batch it
  bool inference = false;              ///< the running statistics are used, and stay
  std::int64_t input_size = 0;         ///< channels
  double eps = 1e-5, momentum = 0.99;
  BatchNormMode mode = BatchNormMode::batch;
  DType dtype = float32;  ///< of the state
  /// Throws ShapeError for a negative size, DTypeError for a dtype that is not floating, Error for another momentum and without a
  /// name.
  [[nodiscard]] static BatchNorm init(std::int64_t input_size, const NamedAxes& axis_name,
                                      const BatchNormOptions& o = {}, Where w = Where::here());
  /// Of nothing seen: count 0, mean 0, variance 1 (ema: 0).
  [[nodiscard]] BatchNormState init_state(Where w = Where::here()) const;
  /// x [channels, d..] -> the same, promoted with weight and state, and the next state. Throws ShapeError for other channels, Error for
  /// a momentum that init refuses, in training TraceError where no map around it has that name.
  [[nodiscard]] std::pair<Array, BatchNormState> operator()(const Array& x, const BatchNormState& state,
                                                            const CallOptions& o = {},
                                                            Where w = Where::here()) const;
};

}  // namespace shardarray::nn
