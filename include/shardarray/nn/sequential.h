// Sequences of layers, and switching from training to inference.
#pragma once
#include <tuple>
#include <type_traits>
#include <utility>

#include "shardarray/nn/layers.h"
#include "shardarray/random.h"
#include "shardarray/tree.h"

namespace shardarray::nn {

namespace detail {

/// Layers that are called with a state and return the next one, as BatchNorm.
template <class L> inline constexpr bool is_stateful = requires(const L& layer) { layer.init_state(); };
template <class L> auto first_state(const L& layer) {
  if constexpr (is_stateful<L>) return layer.init_state();
  else return none;
}
template <class L> Array call_layer(const L& layer, const Array& x, const CallOptions& o) {
  if constexpr (std::is_invocable_v<const L&, const Array&, const CallOptions&>) return layer(x, o);
  else return layer(x);
}
template <class L, class S> Array call_layer(const L& layer, const Array& x, S& state, const CallOptions& o) {
  if constexpr (is_stateful<L>) {
    auto [y, next] = layer(x, std::as_const(state), o);
    state = std::move(next);
    return y;
  } else return call_layer(layer, x, o);
}

}  // namespace detail

/// Layers and activations applied in sequence: `sequential(Linear::init(2, 8, a), relu, Dropout{0.1}, Linear::init(8, 1, b))`. A layer is
/// anything that maps an Array to an Array; one that also takes CallOptions gets its own key, split from `.key`.
template <class... Layers> struct Sequential {
  std::tuple<Layers...> layers;
  static constexpr bool has_state = (detail::is_stateful<Layers> || ...);
  /// The initial states of the layers; `none` for those without one.
  using State = std::tuple<decltype(detail::first_state(std::declval<const Layers&>()))...>;

  [[nodiscard]] State init_state() const requires has_state {
    return std::apply([](const Layers&... layer) { return State{detail::first_state(layer)...}; }, layers);
  }
  /// Throws what the layers throw.
  [[nodiscard]] Array operator()(const Array& x, const CallOptions& o = {}, Where w = Where::here()) const {
    static_assert(!has_state,
                  "nn::Sequential: a layer has a state, as BatchNorm; call the model with it: "
                  "auto [y, next] = model(x, state), where the first one is model.init_state()");
    const Site site(w.line ? w : shardarray::detail::call_site.place());
    if constexpr (has_state) return x;
    else
      return run(x, o, [&](const auto& layer, const Array& v, auto, const CallOptions& own) {
        return detail::call_layer(layer, v, own);
      });
  }
  /// Takes the layers' states and also returns the next ones.
  [[nodiscard]] std::pair<Array, State> operator()(const Array& x, const State& state,
                                                   const CallOptions& o = {},
                                                   Where w = Where::here()) const requires has_state {
    const Site site(w.line ? w : shardarray::detail::call_site.place());
    State next = state;
    const Array y = run(x, o, [&](const auto& layer, const Array& v, auto k, const CallOptions& own) {
      return detail::call_layer(layer, v, std::get<k()>(next), own);
    });
    return {y, std::move(next)};
  }

 private:
  template <class Call> Array run(const Array& x, const CallOptions& o, const Call& call) const {
    constexpr std::size_t n = sizeof...(Layers);
    const Array keys = o.key.has_value() ? random::split(o.key, std::int64_t{n}) : Array();
    Array y = x;
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      ((y = call(std::get<K>(layers), y, std::integral_constant<std::size_t, K>(),
                 CallOptions{keys.has_value() ? keys[K] : Array(), o.inference})),
       ...);
    }
    (std::make_index_sequence<n>());
    return y;
  }
};
/// Builds a Sequential of these layers.
template <class... Layers> [[nodiscard]] Sequential<Layers...> sequential(Layers... layers) {
  return {std::tuple<Layers...>(std::move(layers)...)};
}

namespace detail {

template <class T> void set_inference(T& t, bool value) {
  namespace tree = shardarray::detail;
  if constexpr (requires { requires std::is_same_v<decltype((t.inference)), bool&>; }) t.inference = value;
  const auto each = [&](auto&... parts) { (set_inference(parts, value), ...); };
  if constexpr (std::is_same_v<T, Array> || tree::Static<T>) return;
  else if constexpr (tree::Hooked<T>) std::apply(each, tree_fields(t));
  else if constexpr (tree::is_sequence<T> || tree::is_optional<T>) {
    if constexpr (tree::is_optional<T>) {
      if (t) set_inference(*t, value);
    } else
      for (auto& part : t) set_inference(part, value);
  } else if constexpr (tree::is_map<T>) {
    for (auto& [key, part] : t) set_inference(part, value);
  } else if constexpr (tree::is_tuple<T>) std::apply(each, t);
  else tree::with_fields(t, each);
}

}  // namespace detail

/// Sets every field `bool inference` of the model and its parts, so that layers with special training behaviour stop using it.
template <Tree T> [[nodiscard]] T inference_mode(T model, bool value = true) {
  detail::set_inference(model, value);
  return model;
}

}  // namespace shardarray::nn
