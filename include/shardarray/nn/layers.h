// Dropout, Embedding, PReLU.
#pragma once
#include <optional>

#include "shardarray/ops.h"

namespace shardarray::nn {

/// How a layer is called: Equinox's keyword arguments, `dropout(x, {.key = key})`. A layer of yours that takes them as its second
/// argument gets a key of its own in a Sequential.
struct CallOptions {
  Array key = {};                                ///< for layers that draw random numbers
  std::optional<bool> inference = std::nullopt;  ///< none: as the layer's own field says
};

/// Zeros in the place of a part p of all elements, at random; the others are divided by 1 - p. With `inference`, or p = 0, x itself.
struct SHARDARRAY_API Dropout {
  double p = 0.5;          ///< from 0 to 1
  bool inference = false;  ///< see inference_mode()
  /// Of the shape of x, with Equinox's bits; floating. Throws Error without a key and for another p, as random::split for what is
  /// no single key.
  [[nodiscard]] Array operator()(const Array& x, const CallOptions& o = {}, Where w = Where::here()) const;
};

/// Options of Embedding::init().
struct EmbeddingOptions {
  DType dtype = float32;  ///< of the weight, floating
};
/// A table of vectors: `Embedding{table}`, or random ones of init().
struct SHARDARRAY_API Embedding {
  Array weight;  ///< [number of embeddings, size of each]
  /// Standard normal, with JAX's numbers. Throws ShapeError for negative sizes, DTypeError for a dtype that is not floating, and as
  /// random::split for what is no single key.
  [[nodiscard]] static Embedding init(std::int64_t num_embeddings, std::int64_t embedding_size,
                                      const Array& key, const EmbeddingOptions& o = {},
                                      Where w = Where::here());
  /// [] -> [size]: the row of a whole number; negative ones count from the end, others outside are the nearest. Throws ShapeError
  /// for what is no scalar (batch with vmap), DTypeError for what is no integer.
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const;
};

/// x where x >= 0, else negative_slope * x: a slope that is learnt.
struct SHARDARRAY_API PReLU {
  Array negative_slope = 0.25;  ///< a scalar, or what is broadcast to x
  /// Of the shape of x, promoted. Throws ShapeError where the slope does not fit.
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const;
};

}  // namespace shardarray::nn
