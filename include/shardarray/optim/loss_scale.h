// Training in 16 bits: the loss is multiplied by a number, so that small gradients do not become 0, and the gradients are divided by
// it. The number grows as long as they are finite, and shrinks where they are not, as in jmp.
#pragma once
#include <cstdint>
#include <utility>

#include "shardarray/optim/transform.h"
#include "shardarray/optim/wrappers.h"

namespace shardarray::optim {

/// Options of a loss scale.
struct LossScaleOptions {
  double initial = 32768;
  std::int64_t growth_interval = 2000;  ///< so many finite steps one after another make it grow
  double growth_factor = 2;
  double backoff_factor = 0.5;  ///< it is multiplied by where a step is not finite
  double min_scale = 1;         ///< it does not become smaller
};
/// Are all elements of all floating arrays finite? A bool scalar; true of none.
template <Tree T> [[nodiscard]] Array all_finite(const T& tree, Where w = Where::here());

/// The number and what it depends on: a tree, so a step takes it and gives the next one.
struct SHARDARRAY_API LossScale {
  Array scale;       ///< float32
  Array good_steps;  ///< finite ones since it changed, int32
  LossScaleOptions options;
  /// The first one. Throws Error unless both factors and the scales are positive, ShapeError for an interval below 1.
  [[nodiscard]] static LossScale init(const LossScaleOptions& o = {}, Where w = Where::here());
  /// The loss times the number, in the dtype of the loss.
  [[nodiscard]] Array scaled(const Array& loss, Where w = Where::here()) const;
  /// Floating arrays divided by it, each in its dtype.
  template <Tree T> [[nodiscard]] T unscale(const T& grads, Where w = Where::here()) const;
  /// The next one, after a step that was finite or not (a bool scalar). It stays where growing would make it infinite.
  [[nodiscard]] LossScale adjust(const Array& finite, Where w = Where::here()) const;
};

namespace detail {
[[nodiscard]] SHARDARRAY_API Array finite(const Slots& leaves);
[[nodiscard]] SHARDARRAY_API Slots unscaled(Slots leaves, const Array& scale);
}  // namespace detail
template <Tree T> [[nodiscard]] Array all_finite(const T& tree, Where w) {
  const Site site(w);
  return detail::finite(shardarray::detail::slots(tree));
}
template <Tree T> T LossScale::unscale(const T& grads, Where w) const {
  const Site site(w);
  return detail::with_slots(grads, detail::unscaled(shardarray::detail::slots(grads), scale));
}

/// What dynamic_loss_scale() keeps.
template <class S> struct LossScaledState {
  S inner_state;
  LossScale loss_scale;  ///< `state.loss_scale.scaled(loss)` is what gradients are taken of
};
/// See dynamic_loss_scale().
template <class G> struct LossScaled {
  G inner;
  LossScaleOptions options;
  template <class T> using State = LossScaledState<detail::state_of<G, T>>;
  /// The state of `inner` and the first scale. Throws as `inner` and LossScale::init do.
  template <shardarray::detail::JudgedTree T>
  [[nodiscard]] State<T> init(const T& parameters, Where w = Where::here()) const {
    const Site site(w);
    return {detail::init_of(inner, parameters, w), LossScale::init(options, w)};
  }
  /// (updates, next state) from gradients of the scaled loss: they are divided, and where one is not finite the updates are zeros and
  /// the state of `inner` stays. Throws as `inner` does.
  template <shardarray::detail::JudgedTree T, class P = none_t>
  [[nodiscard]] std::pair<T, State<T>> update(const T& grads, const State<T>& state,
                                              const P& parameters = none, Where w = Where::here()) const {
    const Site site(w);
    const T plain = state.loss_scale.unscale(grads, w);
    const Array good = all_finite(plain, w);
    auto r = detail::update_of(inner, plain, state.inner_state, parameters, w);
    return {detail::with_slots(grads, detail::select(good, shardarray::detail::slots(r.first), {})),
            {detail::select_tree(good, r.second, state.inner_state), state.loss_scale.adjust(good, w)}};
  }
};
/// `inner`, with a loss scale in its state: `dynamic_loss_scale(adam(1e-3))`.
template <class G> [[nodiscard]] LossScaled<G> dynamic_loss_scale(G inner, const LossScaleOptions& o = {}) {
  return {std::move(inner), o};
}

}  // namespace shardarray::optim
