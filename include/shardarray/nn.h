// Layers as plain structs, as in Equinox: trees of arrays that are called on one example. Batch with vmap.
#pragma once
#include <vector>

#include "shardarray/ops.h"

namespace shardarray::nn {

/// Options of Linear::init().
struct LinearOptions {
  bool use_bias = true;  ///< false: bias is absent
};

/// weight * x + bias, of the promoted dtype.
struct SHARDARRAY_API Linear {
  Array weight;  ///< [out, in]
  Array bias;    ///< [out]; absent without a bias
  /// float32, uniform in +-1/sqrt(in), with Equinox's bits. Throws ShapeError for negative sizes, and as random::split for what
  /// is no single key.
  [[nodiscard]] static Linear init(std::int64_t in, std::int64_t out, const Array& key,
                                   const LinearOptions& o = {}, Where w = Where::here());
  /// [in] -> [out]. Throws ShapeError for anything else.
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const;
};

/// Options of MLP::init() and mlp().
struct MLPOptions {
  bool use_bias = true;        ///< of all layers but the last
  bool use_final_bias = true;  ///< of the last
};

/// x itself: the activation behind the last layer.
struct identity_fn {
  [[nodiscard]] Array operator()(const Array& x) const { return x; }
};

/// The layers of an MLP: in -> width -> ... -> width -> out with `depth` hidden layers; a key for each, split from `key`. Throws
/// ShapeError for negative sizes and unless depth is from 0 to 2^20, and as random::split for what is no single key.
[[nodiscard]] SHARDARRAY_API std::vector<Linear> mlp_layers(std::int64_t in, std::int64_t out,
                                                            std::int64_t width, std::int64_t depth,
                                                            const Array& key, const MLPOptions& o, Where w);

[[noreturn]] SHARDARRAY_API void throw_no_layers();

/// Linear layers with an elementwise activation behind each but the last, and `final_activation` behind that.
/// An activation is an op object, a lambda without captures, or a function pointer.
template <class Activation = UnaryFunction<"relu">, class FinalActivation = identity_fn> struct MLP {
  std::vector<Linear> layers;
  Activation activation;
  FinalActivation final_activation;

  /// The layers of mlp_layers(), the activations' default values.
  [[nodiscard]] static MLP init(std::int64_t in, std::int64_t out, std::int64_t width, std::int64_t depth,
                                const Array& key, const MLPOptions& o = {}, Where w = Where::here()) {
    return {mlp_layers(in, out, width, depth, key, o, w), Activation{}, FinalActivation{}};
  }
  /// [in] -> [out], as Linear. Throws TreeError where there is no layer.
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const {
    const Site site(w.line ? w
                           : shardarray::detail::call_site.place());  // as in vmap(model)(x): of that call
    if (layers.empty()) throw_no_layers();
    Array y = x;
    for (std::size_t k = 0; k + 1 < layers.size(); k++) y = activation(layers[k](y));
    return final_activation(layers.back()(y));
  }
};

/// An MLP with the given activation: `mlp(4, 4, 32, 1, sa::tanh, key)`. Throws as mlp_layers().
template <class Activation>
[[nodiscard]] MLP<Activation> mlp(std::int64_t in, std::int64_t out, std::int64_t width, std::int64_t depth,
                                  Activation activation, const Array& key, const MLPOptions& o = {},
                                  Where w = Where::here()) {
  return {mlp_layers(in, out, width, depth, key, o, w), std::move(activation), identity_fn{}};
}

}  // namespace shardarray::nn
