// Dropout, Embedding, PReLU.
#pragma once
#include <optional>

#include "shardarray/ops.h"

namespace shardarray::nn {

/// Call options, Equinox's keyword arguments: `dropout(x, {.key = key})`. A layer of yours that takes them as its second argument gets
/// its own key in a Sequential.
struct CallOptions {
  Array key = {};                                ///< for layers that draw random numbers
  std::optional<bool> inference = std::nullopt;  ///< none: as in the layer's own field
};

/// Zeroes each element with probability p and divides the others by 1 - p. With `inference`, or p = 0, returns x.
struct SHARDARRAY_API Dropout {
  double p = 0.5;          ///< from 0 to 1
  bool inference = false;  ///< see inference_mode()
  /// Of the shape of x, with Equinox's bits; floating. Throws Error without a key and for a p outside of [0, 1], and as random::split for
  /// an invalid key.
  [[nodiscard]] Array operator()(const Array& x, const CallOptions& o = {}, Where w = Where::here()) const;
};

/// Options of Embedding::init().
struct EmbeddingOptions {
  DType dtype = float32;  ///< of the weight, floating
};
/// A table of vectors: `Embedding{table}`, or random ones from init().
struct SHARDARRAY_API Embedding {
  Array weight;  ///< [number of embeddings, size of each]
  /// Standard normal, with JAX's numbers. Throws ShapeError for negative sizes, DTypeError for a dtype that is not floating, and as
  /// random::split for an invalid key.
  [[nodiscard]] static Embedding init(std::int64_t num_embeddings, std::int64_t embedding_size,
                                      const Array& key, const EmbeddingOptions& o = {},
                                      Where w = Where::here());
  /// [] -> [size]: the row at an integer index; negative ones count from the end, others out of range are clamped. Throws ShapeError
  /// unless the index is a scalar (batch with vmap), DTypeError unless it is an integer.
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const;
};

/// x where x >= 0, else negative_slope * x, with a learnable slope.
struct SHARDARRAY_API PReLU {
  Array negative_slope = 0.25;  ///< a scalar, or broadcastable to x
  /// Of the shape of x, promoted. Throws ShapeError if the slope does not fit.
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const;
};

}  // namespace shardarray::nn
