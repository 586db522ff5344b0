// Loss scaling for 16-bit training: the loss is multiplied by a scale, so that small gradients do not vanish, and gradients are divided
// by it. The scale grows while gradients are finite, and shrinks when they are not, as in jmp.
#pragma once
#include <cstdint>
#include <utility>

#include "shardarray/optim/transform.h"
#include "shardarray/optim/wrappers.h"

namespace shardarray::optim {

/// Options of a loss scale.
struct LossScaleOptions {
  double initial = 32768;
  std::int64_t growth_interval = 2000;  ///< grows after this many consecutive finite steps
  double growth_factor = 2;
  double backoff_factor = 0.5;  ///< factor of the scale after a step that is not finite
  double min_scale = 1;         ///< lower bound of the scale
};
/// Whether all elements of all floating arrays are finite: a bool scalar; true if there are none.
template <Tree T> [[nodiscard]] Array all_finite(const T& tree, Where w = Where::here());

/// The scale and its statistics: a tree that a step takes and returns.
struct SHARDARRAY_API LossScale {
  Array scale;       ///< float32
  Array good_steps;  ///< finite steps since the last change, int32
  LossScaleOptions options;
  /// The initial scale. Throws Error unless both factors and the scales are positive, ShapeError for an interval below 1.
  [[nodiscard]] static LossScale init(const LossScaleOptions& o = {}, Where w = Where::here());
  /// The loss times the scale, in the dtype of the loss.
  [[nodiscard]] Array scaled(const Array& loss, Where w = Where::here()) const;
  /// Divides floating arrays by the scale, each in its dtype.
  template <Tree T> [[nodiscard]] T unscale(const T& grads, Where w = Where::here()) const;
  /// The next scale, given whether the step was finite (a bool scalar). It stays if growing would make it infinite.
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

/// The state of dynamic_loss_scale().
template <class S> struct LossScaledState {
  S inner_state;
  LossScale loss_scale;  ///< take gradients of `state.loss_scale.scaled(loss)`
};
/// See dynamic_loss_scale().
template <class G> struct LossScaled {
  G inner;
  LossScaleOptions options;
  template <class T> using State = LossScaledState<detail::state_of<G, T>>;
  /// The state of `inner` and the initial scale. Throws as `inner` and LossScale::init do.
  template <shardarray::detail::JudgedTree T>
  [[nodiscard]] State<T> init(const T& parameters, Where w = Where::here()) const {
    const Site site(w);
    return {detail::init_of(inner, parameters, w), LossScale::init(options, w)};
  }
  /// Returns (updates, next state) from gradients of the scaled loss, unscaling them; if one is not finite, updates are zero and the
  /// state of `inner` is kept. Throws as `inner` does.
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
/// Wraps `inner` with a loss scale in its state: `dynamic_loss_scale(adam(1e-3))`.
template <class G> [[nodiscard]] LossScaled<G> dynamic_loss_scale(G inner, const LossScaleOptions& o = {}) {
  return {std::move(inner), o};
}

}  // namespace shardarray::optim
