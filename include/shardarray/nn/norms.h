// Normalisations. They are computed in float32 (float64 for float64) and rounded once to the dtype of x, which must be floating, else
// DTypeError. Weights start as ones, biases as zeros.
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
/// (x - mean) / sqrt(variance + eps) * weight + bias, with statistics over all of x. Source: J. L. Ba et al. (2016).
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
/// x / sqrt(mean(x^2) + eps) * weight + bias, with the mean over all of x. Source: B. Zhang, R. Sennrich (2019).
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
/// LayerNorm over each group of channels, with a weight and a bias per channel. Source: Y. Wu, K. He (2018).
struct SHARDARRAY_API GroupNorm {
  std::int64_t groups = 1;
  double eps = 1e-5;
  Array weight;  ///< [channels]; absent: 1
  Array bias;    ///< [channels]; absent: 0
  /// Throws ShapeError unless there is at least one group, the groups divide the channels, and channels are given if there are weights.
  [[nodiscard]] static GroupNorm init(std::int64_t groups,
                                      std::optional<std::int64_t> channels = std::nullopt,
                                      const GroupNormOptions& o = {}, Where w = Where::here());
  /// [channels, d..] -> [channels, d..]. Throws ShapeError for a scalar and for channels that do not fit.
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const;
};

/// Which statistics BatchNorm uses. batch: those of the batch in training, the running ones in inference. ema: the running ones in both.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class BatchNormMode : std::uint8_t { batch, ema };
#pragma GCC diagnostic pop
/// Options of BatchNorm::init().
struct BatchNormOptions {
  double eps = 1e-5;
  bool channelwise_affine = true;  ///< false: weight and bias are absent
  /// The share of the running statistics that is kept in a step, from 0 to 1; less than 1 in mode batch.
  double momentum = 0.99;
  bool inference = false;                     ///< see inference_mode()
  DType dtype = float32;                      ///< of weight, bias and state
  BatchNormMode mode = BatchNormMode::batch;  ///< Equinox's default is ema, with a warning
};
/// The running statistics of BatchNorm: a value that a call takes and returns.
struct BatchNormState {
  Array count;  ///< int32: number of batches seen
  Array mean;   ///< [channels], the running statistics
  Array var;    ///< [channels]
};
/// (x - mean) / sqrt(variance + eps) * weight + bias with one mean and variance per channel, over the rest of x and over the named axes
/// of the enclosing maps:
///
///     auto [y, next] = vmap(norm, {.in_axes = {0, none}, .out_axes = {0, none}, .axis_name = "batch"})(x, state);
///
/// Source: S. Ioffe, C. Szegedy (2015).
struct SHARDARRAY_API BatchNorm {
  Array weight;                        ///< [channels]; absent: 1
  Array bias;                          ///< [channels]; absent: 0
  std::vector<std::string> axis_name;  ///< of the maps that batch it
  bool inference = false;              ///< use the running statistics and do not update them
  std::int64_t input_size = 0;         ///< channels
  double eps = 1e-5, momentum = 0.99;
  BatchNormMode mode = BatchNormMode::batch;
  DType dtype = float32;  ///< of the state
  /// Throws ShapeError for a negative size, DTypeError for a dtype that is not floating, Error for a momentum out of range and without an
  /// axis name.
  [[nodiscard]] static BatchNorm init(std::int64_t input_size, const NamedAxes& axis_name,
                                      const BatchNormOptions& o = {}, Where w = Where::here());
  /// The initial state: count 0, mean 0, variance 1 (ema: 0).
  [[nodiscard]] BatchNormState init_state(Where w = Where::here()) const;
  /// x [channels, d..] -> the same shape, promoted with weight and state, and the next state. Throws ShapeError for other channels, Error
  /// for a momentum that init rejects, and in training TraceError if no enclosing map has that axis name.
  [[nodiscard]] std::pair<Array, BatchNormState> operator()(const Array& x, const BatchNormState& state,
                                                            const CallOptions& o = {},
                                                            Where w = Where::here()) const;
};

}  // namespace shardarray::nn
