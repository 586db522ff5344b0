// Transformations that wrap others: for some leaves only, for accumulated gradients, with slow parameters. All follow the rules of
// transform.h, except that lookahead() has its own parameters.
#pragma once
#include <optional>
#include <string>

#include "shardarray/conditional.h"
#include "shardarray/optim/scaling.h"
#include "shardarray/optim/transform.h"
#include "shardarray/tree_filter.h"

namespace shardarray::optim {

// ---------------------------------------------------------------- some leaves only
/// Selects leaves by the array, or by the array and its path (`layers[0].bias`). It sees parameters in init and gradients in update, so
/// it should use shape, dtype and path.
template <class M>
concept Mask = LeafPredicate<M>;

/// The state of masked().
template <class S> struct MaskedState {
  S inner_state;  ///< of the selected leaves; others are absent
};
namespace detail {
/// The tree without the leaves that are not selected.
template <class T, class M> T chosen(T tree, const M& mask) {
  if constexpr (std::predicate<const M&, const Array&>)
    return filter(std::move(tree), [&](const Array& a) { return by_user(mask, a); });
  else
    return filter(std::move(tree),
                  [&](const Array& a, const std::string& path) { return by_user(mask, a, path); });
}
}  // namespace detail
/// See masked().
template <class G, class M> struct Masked {
  G inner;
  M mask;
  template <class T> using State = MaskedState<detail::state_of<G, T>>;
  /// The state of the selected leaves. Throws as `inner` does.
  template <shardarray::detail::JudgedTree T>
  [[nodiscard]] State<T> init(const T& parameters, Where w = Where::here()) const {
    const Site site(w);
    return {detail::init_of(inner, detail::chosen(parameters, mask), w)};
  }
  /// Returns (updates, next state). Throws as `inner` does.
  template <shardarray::detail::JudgedTree T, class P = none_t>
  [[nodiscard]] std::pair<T, State<T>> update(const T& grads, const State<T>& state,
                                              const P& parameters = none, Where w = Where::here()) const {
    const Site site(w);
    auto [updates, next] = [&] {
      const T inside = detail::chosen(grads, mask);
      if constexpr (std::same_as<P, T>)
        return detail::update_of(inner, inside, state.inner_state, detail::chosen(parameters, mask), w);
      else return detail::update_of(inner, inside, state.inner_state, parameters, w);
    }();
    return {combine(updates, grads), {std::move(next)}};
  }
};
/// Applies `inner` to the leaves selected by `mask`; updates of the others pass unchanged:
/// `masked(add_decayed_weights(0.1), [](const Array& x) { return x.ndim() > 1; })`.
template <class G, Mask M> [[nodiscard]] Masked<G, M> masked(G inner, M mask) {
  return {std::move(inner), std::move(mask)};
}

// ---------------------------------------------------------------- an optional part
namespace detail {
/// The transformation, or nothing: then the state is absent.
template <class G> struct Maybe {
  std::optional<G> part;
  template <class T> using State = std::optional<state_of<G, T>>;
  template <shardarray::detail::JudgedTree T>
  State<T> init(const T& parameters, Where w = Where::here()) const {
    return part ? State<T>(init_of(*part, parameters, w)) : State<T>();
  }
  template <shardarray::detail::JudgedTree T, class P>
  std::pair<T, State<T>> update(const T& grads, const State<T>& state, const P& p,
                                Where w = Where::here()) const {
    if (!part || !state) return {grads, state};
    auto r = update_of(*part, grads, *state, p, w);
    return {std::move(r.first), std::move(r.second)};
  }
};
template <class G> Maybe<G> when(bool is_there, G part) {
  return {is_there ? std::optional<G>(std::move(part)) : std::nullopt};
}
template <shardarray::detail::FixedString name, class... G> Chain<name, G...> chain_as(G... parts) {
  return {{std::move(parts)...}};
}

/// a where `chosen` (a bool scalar) holds, else b, in the dtype of b; a where b is absent. An empty list b means zeros.
[[nodiscard]] SHARDARRAY_API Slots select(const Array& chosen, const Slots& a, const Slots& b);
/// As select(), for a choice known at trace time.
[[nodiscard]] SHARDARRAY_API Slots kept(bool chosen, const Slots& a, const Slots& b);
template <class T> [[nodiscard]] T select_tree(const Array& chosen, const T& a, const T& b) {
  return with_slots(b, select(chosen, shardarray::detail::slots(a), shardarray::detail::slots(b)));
}
}  // namespace detail

// ---------------------------------------------------------------- accumulated gradients
/// Options of multi_steps().
struct MultiStepsOptions {
  bool use_grad_mean = true;  ///< the mean of the gradients, otherwise their sum
};
/// The state of multi_steps().
template <class S, class T> struct MultiStepsState {
  Array mini_step;      ///< gradients since the last update, int32
  Array gradient_step;  ///< updates so far, int32
  S inner_opt_state;
  T acc_grads;  ///< the mean or sum since the last update; float32 for 16-bit parameters
};
namespace detail {
/// Zeros of at least float32.
[[nodiscard]] SHARDARRAY_API Slots accumulators(const Slots& parameters);
struct MiniStep {
  Array emit;            ///< whether this is the last gradient of an update
  Slots accumulated;     ///< including this gradient
  Slots grads;           ///< the same in the dtypes of the gradients
  Array mini, gradient;  ///< the next counts
};
[[nodiscard]] SHARDARRAY_API MiniStep mini_step(const Slots& grads, const Slots& sums, const Array& mini,
                                                const Array& gradient, const Array& every_k, bool mean);
}  // namespace detail
/// See multi_steps(). K: std::int64_t, or a schedule.
template <class G, class K> struct MultiSteps {
  G inner;
  K every_k;  ///< gradients per update
  MultiStepsOptions options;
  template <class T> using State = MultiStepsState<detail::state_of<G, T>, T>;
  /// The state of `inner`, counts 0, and zeros for every floating array.
  template <shardarray::detail::JudgedTree T>
  [[nodiscard]] State<T> init(const T& parameters, Where w = Where::here()) const {
    const Site site(w);
    const auto zeros = detail::accumulators(shardarray::detail::slots(parameters));
    return {detail::zero_count(w), detail::zero_count(w), detail::init_of(inner, parameters, w),
            detail::with_slots(parameters, zeros)};
  }
  /// Returns (zeros, next state) k - 1 times, then the updates of `inner` for the mean. Throws, with the path, if the gradients do not
  /// fit the state, as adam does, and as `inner` does.
  template <shardarray::detail::JudgedTree T, class P = none_t>
  [[nodiscard]] std::pair<T, State<T>> update(const T& grads, const State<T>& state,
                                              const P& parameters = none, Where w = Where::here()) const {
    const Site site(w, "multi_steps.update");
    const char* function = shardarray::detail::call_site.function;
    auto structure = shardarray::detail::structure(grads, false);
    const auto sums = shardarray::detail::slots_like(structure, state.acc_grads, 1, function);
    detail::check_partners(grads, sums, function);
    const auto m = detail::mini_step(shardarray::detail::slots(grads), sums, state.mini_step,
                                     state.gradient_step, steps(state.gradient_step), options.use_grad_mean);
    const auto next = [&](bool emits) {
      auto r =
          detail::update_of(inner, detail::with_slots(grads, m.grads), state.inner_opt_state, parameters, w);
      using shardarray::detail::slots;
      return std::pair(detail::with_slots(grads, detail::kept(emits, slots(r.first), {})),
                       detail::with_slots(state.inner_opt_state, detail::kept(emits, slots(r.second),
                                                                              slots(state.inner_opt_state))));
    };
    auto r = cond(
        m.emit, [&] { return next(true); }, [&] { return next(false); });
    return {std::move(r.first),
            {m.mini, m.gradient, std::move(r.second),
             detail::with_slots(state.acc_grads, detail::select(!m.emit, m.accumulated, {}))}};
  }
  /// Whether the last update was one of `inner`: a bool scalar.
  template <class S, class T>
  [[nodiscard]] Array has_updated(const MultiStepsState<S, T>& state, Where w = Where::here()) const {
    const Site site(w);
    return logical_and(state.mini_step == 0, state.gradient_step > 0);
  }

 private:
  [[nodiscard]] Array steps([[maybe_unused]] const Array& gradient_step) const {
    if constexpr (std::is_arithmetic_v<K>) return every_k;
    else return detail::by_user(every_k, gradient_step);
  }
};
/// optax.MultiSteps: passes the mean of `every_k` gradients to `inner`, for batches that do not fit into memory; until then updates are
/// zero and `inner` does not run (see cond()). The state is an ordinary value, so the step remains a single jitted function. If gradients
/// are sums over devices, acc_grads can stay unreduced: filter_shard it to P(unreduced("data")), and only the last of every_k steps
/// reduces it. every_k: a number, or an integer-valued schedule of the number of updates. Throws ShapeError for a number below 1.
template <class G>
[[nodiscard]] MultiSteps<G, std::int64_t> multi_steps(G inner, std::int64_t every_k,
                                                      const MultiStepsOptions& o = {},
                                                      Where w = Where::here()) {
  const Site site(w);
  detail::check_steps(every_k, "multi_steps");
  return {std::move(inner), every_k, o};
}
template <class G, Schedule F>
[[nodiscard]] MultiSteps<G, F> multi_steps(G inner, F every_k, const MultiStepsOptions& o = {}) {
  return {std::move(inner), std::move(every_k), o};
}

// ---------------------------------------------------------------- slow parameters
namespace detail {
/// The same values, each in its own memory.
[[nodiscard]] SHARDARRAY_API Slots copies_of(Slots parameters);
}  // namespace detail
/// The parameters of lookahead().
template <class T> struct LookaheadParams {
  T fast, slow;
  /// Both have these values, the slow ones in their own memory, so that a step may donate both.
  [[nodiscard]] static LookaheadParams init_synced(const T& parameters, Where w = Where::here()) {
    const Site site(w);
    return {parameters,
            detail::with_slots(parameters, detail::copies_of(shardarray::detail::slots(parameters)))};
  }
};
/// The state of lookahead().
template <class S> struct LookaheadState {
  S fast_state;
  Array steps_since_sync;  ///< int32
};
namespace detail {
/// The updates of fast and slow parameters.
struct LookaheadStep {
  Slots fast, slow;
  Array sync, steps;
};
[[nodiscard]] SHARDARRAY_API LookaheadStep lookahead_step(const Slots& updates, const Slots& fast,
                                                          const Slots& slow, const Array& steps,
                                                          std::int64_t period, double slow_step_size);
}  // namespace detail
/// See lookahead().
template <class G> struct Lookahead {
  G fast_optimizer;
  std::int64_t sync_period;
  double slow_step_size;
  bool reset_state;
  template <class T> using State = LookaheadState<detail::state_of<G, T>>;
  /// The state of the fast parameters' optimizer, and 0 steps.
  template <shardarray::detail::JudgedTree T>
  [[nodiscard]] State<T> init(const LookaheadParams<T>& parameters, Where w = Where::here()) const {
    const Site site(w);
    return {detail::init_of(fast_optimizer, parameters.fast, w), detail::zero_count(w)};
  }
  /// Returns (updates of both, next state) from gradients of the fast parameters. Throws as the optimizer does, and TreeError or
  /// ShapeError, with the path, if the parameters do not fit the gradients.
  template <shardarray::detail::JudgedTree T>
  [[nodiscard]] std::pair<LookaheadParams<T>, State<T>> update(const T& grads, const State<T>& state,
                                                               const LookaheadParams<T>& parameters,
                                                               Where w = Where::here()) const {
    const Site site(w, "lookahead.update");
    const char* function = shardarray::detail::call_site.function;
    auto r = detail::update_of(fast_optimizer, grads, state.fast_state, parameters.fast, w);
    const auto m = detail::lookahead_step(shardarray::detail::slots(r.first),
                                          detail::slots_of_params(grads, parameters.fast, function),
                                          detail::slots_of_params(grads, parameters.slow, function),
                                          state.steps_since_sync, sync_period, slow_step_size);
    if (reset_state)
      r.second = detail::select_tree(m.sync, detail::init_of(fast_optimizer, parameters.fast, w), r.second);
    return {{detail::with_slots(grads, m.fast), detail::with_slots(grads, m.slow)},
            {std::move(r.second), m.steps}};
  }
};
/// Every sync_period updates of the fast parameters, the slow ones move the fraction slow_step_size of the way towards them, and the fast
/// ones are reset to the result (with reset_state, so is their state). Start with LookaheadParams<T>::init_synced(model); take gradients
/// of `.fast`, apply_updates to both, `.slow` is the trained model. Throws ShapeError for a period below 1. Source: M. Zhang and others,
/// 2019.
template <class G>
[[nodiscard]] Lookahead<G> lookahead(G fast_optimizer, std::int64_t sync_period, double slow_step_size,
                                     bool reset_state = false, Where w = Where::here()) {
  const Site site(w);
  detail::check_steps(sync_period, "lookahead");
  return {std::move(fast_optimizer), sync_period, slow_step_size, reset_state};
}

}  // namespace shardarray::optim
