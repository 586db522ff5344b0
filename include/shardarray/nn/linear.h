// Linear layers and the MLP.
#pragma once
#include <concepts>
#include <type_traits>
#include <vector>

#include "shardarray/ops.h"

namespace shardarray::nn {

/// A layer size: one element, passed as a scalar rather than a vector. Equinox's size "scalar".
inline constexpr struct scalar_t {
} scalar{};
/// The input or output size of a layer: a number, or `nn::scalar`.
struct Features {
  template <class I>
  requires(std::is_convertible_v<const I&, std::int64_t> && !std::floating_point<I>) Features(const I& n) {
    if constexpr (std::integral<I>) size = to_int64(n);
    else size = n;
  }
  Features(scalar_t) : is_scalar(true) {}
  std::int64_t size = 1;
  bool is_scalar = false;
};

/// Options of Linear::init().
struct LinearOptions {
  bool use_bias = true;   ///< false: bias is absent
  DType dtype = float32;  ///< of weight and bias, floating
};

/// weight * x + bias, in the promoted dtype.
struct SHARDARRAY_API Linear {
  Array weight;             ///< [out, in]
  Array bias;               ///< [out]; absent without a bias
  bool scalar_in = false;   ///< x is a scalar, in is 1
  bool scalar_out = false;  ///< the result is a scalar, out is 1
  /// Uniform in +-1/sqrt(in), with Equinox's bits. Throws ShapeError for negative sizes, DTypeError for a dtype that is not floating, and
  /// as random::split for an invalid key.
  [[nodiscard]] static Linear init(Features in, Features out, const Array& key, const LinearOptions& o = {},
                                   Where w = Where::here());
  /// [in] -> [out]; scalars if so configured. Throws ShapeError for anything else.
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const;
};

/// Options of MLP::init() and mlp().
struct MLPOptions {
  bool use_bias = true;        ///< for all layers but the last
  bool use_final_bias = true;  ///< for the last one
  DType dtype = float32;       ///< of weights and biases, floating
};

/// Returns x: the default activation after the last layer. As a layer it is called Identity.
struct identity_fn {
  [[nodiscard]] Array operator()(const Array& x) const { return x; }
};
using Identity = identity_fn;

/// A function as a type, for activations: `MLP<Function<sa::tanh>>`, `MLP<Function<my_fn>>`.
template <auto f> struct Function {
  [[nodiscard]] Array operator()(const Array& x) const { return f(x); }
};

/// The layers of an MLP: in -> width -> ... -> width -> out with `depth` hidden layers, each with a key split from `key`. Throws
/// ShapeError for negative sizes and unless depth is from 0 to 2^20, and as Linear::init().
[[nodiscard]] SHARDARRAY_API std::vector<Linear> mlp_layers(Features in, Features out, std::int64_t width,
                                                            std::int64_t depth, const Array& key,
                                                            const MLPOptions& o, Where w);

[[noreturn]] SHARDARRAY_API void throw_no_layers();

/// Linear layers with an elementwise activation after each but the last, and `final_activation` after the last. An activation is an op
/// object (`decltype(sa::gelu)`), Function<f>, a lambda without captures, or a function pointer.
template <class Activation = UnaryFunction<"relu">, class FinalActivation = identity_fn> struct MLP {
  std::vector<Linear> layers;
  std::remove_const_t<Activation> activation;
  std::remove_const_t<FinalActivation> final_activation;

  /// The layers of mlp_layers() with default-constructed activations; for function pointers, which would be null, use mlp().
  [[nodiscard]] static MLP init(Features in, Features out, std::int64_t width, std::int64_t depth,
                                const Array& key, const MLPOptions& o = {}, Where w = Where::here()) {
    static_assert(!std::is_pointer_v<Activation> && !std::is_pointer_v<FinalActivation>,
                  "shardarray: MLP::init: a function pointer has no function by default; write "
                  "nn::MLP<nn::Function<sa::tanh>>, or nn::mlp(in, out, width, depth, sa::tanh, key)");
    return {mlp_layers(in, out, width, depth, key, o, w), {}, {}};
  }
  /// [in] -> [out], as Linear. Throws TreeError if there is no layer.
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
[[nodiscard]] MLP<Activation> mlp(Features in, Features out, std::int64_t width, std::int64_t depth,
                                  Activation activation, const Array& key, const MLPOptions& o = {},
                                  Where w = Where::here()) {
  return {mlp_layers(in, out, width, depth, key, o, w), std::move(activation), identity_fn{}};
}
/// The same with an activation after the last layer: `mlp(4, 1, 32, 2, sa::tanh, sa::sigmoid, key)`.
template <class Activation, class FinalActivation>
requires std::invocable<const FinalActivation&, const Array&>
[[nodiscard]] MLP<Activation, FinalActivation> mlp(Features in, Features out, std::int64_t width,
                                                   std::int64_t depth, Activation activation,
                                                   FinalActivation final_activation, const Array& key,
                                                   const MLPOptions& o = {}, Where w = Where::here()) {
  return {mlp_layers(in, out, width, depth, key, o, w), std::move(activation), std::move(final_activation)};
}

}  // namespace shardarray::nn
