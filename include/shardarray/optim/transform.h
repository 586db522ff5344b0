// Gradient transformations, as in optax: values with
//
//     init(parameters)                      the first state, a tree
//     update(gradients, state, parameters)  the pair (updates, next state)
//
// Any class of yours that has both is one, and can be chained with those of the library. States are plain structs (of a chain: tuples) of
// arrays and of trees like the parameters, so jit, donation, filter_shard and tree_paths treat them like models. Absent arrays stay
// absent everywhere. States keep their initial dtypes, those of the parameters (16-bit ones too); updates are computed in the dtypes of
// gradients and states, promoted as by operators, and numbers in options are rounded to the dtype of what they are combined with.
#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <tuple>
#include <utility>

#include "shardarray/detail/function.h"
#include "shardarray/tree.h"

namespace shardarray::optim {

/// A number that varies over updates: a function of the number of updates so far (an int32 scalar, 0 at the first).
template <class F>
concept Schedule = !std::is_arithmetic_v<F> && std::is_invocable_r_v<Array, const F&, const Array&>;

/// A gradient transformation of parameters T.
template <class G, class T>
concept GradientTransformation = requires(const G& g, const T& t) {
  { g.update(t, g.init(t), t) } -> std::convertible_to<std::pair<T, decltype(g.init(t))>>;
};

/// The state of stateless transformations.
struct EmptyState {};
/// The state of transformations that follow a schedule.
struct ScaleByScheduleState {
  Array count;  ///< updates so far, int32; saturates
};

namespace detail {

/// The arrays of a tree including absent ones: one per slot.
using Slots = std::vector<Array>;

/// One update of all leaves. A rule turns gradients into updates and the state into the next state, in place; slots without a gradient
/// are skipped.
struct LeafStep {
  Slots updates;                ///< initially the gradients
  std::vector<Slots> state;     ///< the state's trees, in order
  Slots params = {};            ///< for rules with `uses_params`
  Array count = {}, next = {};  ///< updates so far, and including this one; absent if the state has no count
};

/// New zeros, or `value`, for each floating array of a list, placed like that array; absent for the others.
[[nodiscard]] SHARDARRAY_API Slots zeros_for(Slots parameters);
[[nodiscard]] SHARDARRAY_API Slots filled_for(Slots parameters, double value);
[[nodiscard]] SHARDARRAY_API Array zero_count(Where w);
/// count + 1; saturates at the largest int32.
[[nodiscard]] SHARDARRAY_API Array next_count(const Array& count);
[[nodiscard]] SHARDARRAY_API Array minus_rate(double rate);
[[nodiscard]] SHARDARRAY_API Array minus_rate(const Array& rate);
/// Calls a function of the user, which has its own source lines: a schedule, a mask.
template <class F, class... A> [[nodiscard]] decltype(auto) by_user(const F& f, A&&... arguments) {
  const shardarray::detail::UserSite user;
  return std::invoke(f, std::forward<A>(arguments)...);
}
template <class Rate> [[nodiscard]] Array minus_rate_at(const Rate& rate, const Array& count) {
  if constexpr (std::is_arithmetic_v<Rate>) return minus_rate(static_cast<double>(rate));
  else return minus_rate(Array(by_user(rate, count)));
}
/// init and update of another transformation: for line `w` if it is the library's, for its own lines if it is the user's.
template <class G, class T> [[nodiscard]] auto init_of(const G& inner, const T& params, Where w) {
  if constexpr (requires { inner.init(params, w); }) return inner.init(params, w);
  else {
    const shardarray::detail::UserSite user;
    return inner.init(params);
  }
}
template <class G, class T, class S, class P>
[[nodiscard]] auto update_of(const G& inner, const T& grads, const S& state, const P& params, Where w) {
  if constexpr (requires { inner.update(grads, state, params, w); })
    return inner.update(grads, state, params, w);
  else {
    const shardarray::detail::UserSite user;
    return inner.update(grads, state, params);
  }
}
/// Casts the states after an update to their previous dtypes.
SHARDARRAY_API void keep_dtypes(std::vector<Slots>& next, const std::vector<Slots>& before);
/// Multiplies all updates, each in its own dtype.
SHARDARRAY_API void scale_leaves(LeafStep& s, const Array& factor);

/// Throws, with the path, TreeError if only one of the trees has an array, ShapeError if their shapes differ.
template <class T>
void check_partners(const T& grads, const Slots& state, const char* function, bool same_shape = true) {
  std::size_t i = 0;
  shardarray::detail::each_leaf(grads, [&](const Array& a, const Path& p) {
    const Array& mine = state[i++];
    if (a.has_value() != mine.has_value())
      shardarray::detail::throw_missing_leaf(p, a.has_value() ? 1 : 0, function);
    if (a.has_value() && same_shape)
      shardarray::detail::check_leaf_shape(mine, a, "gradient", false, p, function);
  });
}
/// Parameters of type P beside gradients of type T.
template <class T, class P> struct Parameters {
  static consteval bool ok() {
    constexpr bool fits = std::is_same_v<T, P>;
    static_assert(fits,
                  "optim: this transformation needs the parameters, a tree like the gradients: "
                  "update(gradients, state, parameters)");
    return fits;
  }
};
template <class T, class P, bool used = true> struct ParametersVerdict {
  static constexpr bool good = !used || std::is_same_v<T, P>;
  using Complaint = Parameters<T, P>;
};
/// Whether a transformation declares that it uses the parameters.
template <class G> inline constexpr bool uses_params = false;
template <class G>
requires requires { G::uses_params; }
inline constexpr bool uses_params<G> = G::uses_params;

/// The parameters' slots; those without a gradient are irrelevant.
template <class T, class P> Slots slots_of_params(const T& grads, const P& params, const char* function) {
  Slots r;
  if constexpr (shardarray::detail::Judged<ParametersVerdict<T, P>>::ok()) {
    auto structure = shardarray::detail::structure(grads, false);
    r = shardarray::detail::slots_like(structure, params, 1, function);
    std::size_t i = 0;
    shardarray::detail::each_leaf(grads, [&](const Array& a, const Path& p) {
      const Array& mine = r[i++];
      if (!a.has_value()) return;
      if (!mine.has_value()) shardarray::detail::throw_missing_leaf(p, 1, function);
      shardarray::detail::check_leaf_shape(mine, a, "gradient", false, p, function);
    });
  }
  return r;
}
template <class T> T with_slots(T tree, const Slots& next) {
  shardarray::detail::set_slots(tree, next);
  return tree;
}

/// States with a count have that field first; all other fields are trees like the parameters.
template <class S>
concept Counts = requires(S& s) {
  s.count;
};
template <class S> inline constexpr std::size_t tree_count = shardarray::detail::field_count<S> - Counts<S>;
template <class S> auto trees_of(S& s) {
  return shardarray::detail::with_fields(s, [](auto&... f) {
    if constexpr (!Counts<S>) return std::tie(f...);
    else return [](auto&, auto&... trees) { return std::tie(trees...); }(f...);
  });
}

/// Optional members of a rule besides `step` and `State`: `counts()`: whether there is a count; `first(parameters, k)`: initial values of
/// tree k (default: zeros); `kept()`: how many of the trees have arrays; `shaped`: how many have the gradients' shapes.
template <class S, class R, class T>
[[nodiscard]] S first_state(const R& rule, const T& params, [[maybe_unused]] Where w) {
  [[maybe_unused]] const Slots slots = shardarray::detail::slots(params);
  [[maybe_unused]] const auto tree = [&](std::size_t k) {
    if constexpr (requires { rule.first(slots, k); }) return with_slots(params, rule.first(slots, k));
    else return with_slots(params, zeros_for(slots));
  };
  return [&]<std::size_t... K>(std::index_sequence<K...>) {
    if constexpr (!Counts<S>) return S{tree(K)...};
    else {
      bool counts = true;
      if constexpr (requires { rule.counts(); }) counts = rule.counts();
      return S{counts ? zero_count(w) : Array(), tree(K)...};
    }
  }
  (std::make_index_sequence<tree_count<S>>{});
}
template <class R, class T, class S, class P>
[[nodiscard]] std::pair<T, S> leaf_update(const R& rule, const T& grads, const S& state,
                                          [[maybe_unused]] const P& params, const char* function) {
  LeafStep step{shardarray::detail::slots(grads), {}};
  auto structure = shardarray::detail::structure(grads, false);
  std::apply(
      [&](const auto&... tree) {
        (step.state.push_back(shardarray::detail::slots_like(structure, tree, 1, function)), ...);
      },
      trees_of(state));
  std::size_t kept = step.state.size(), shaped = kept;
  if constexpr (requires { rule.kept(); }) kept = rule.kept();
  if constexpr (requires { R::shaped; }) shaped = R::shaped;
  for (std::size_t k = 0; k < kept; k++) check_partners(grads, step.state[k], function, k < shaped);
  if constexpr (requires { R::uses_params; }) step.params = slots_of_params(grads, params, function);
  S next = state;
  if constexpr (Counts<S>)
    if (state.count.has_value()) {
      step.count = state.count;
      step.next = next_count(state.count);
    }
  const std::vector<Slots> before = step.state;
  rule.step(step);
  keep_dtypes(step.state, before);
  if constexpr (Counts<S>) next.count = step.next;
  std::size_t k = 0;
  std::apply([&](auto&... tree) { (shardarray::detail::set_slots(tree, step.state[k++]), ...); },
             trees_of(next));
  return {with_slots(grads, step.updates), std::move(next)};
}

/// Multiplies by a number or a schedule, or by its negative.
template <class Rate, shardarray::detail::FixedString text = "scale_by_learning_rate.update">
struct RateRule {
  static constexpr const char* name = text.text;
  template <class>
  using State = std::conditional_t<std::is_arithmetic_v<Rate>, EmptyState, ScaleByScheduleState>;
  Rate rate;
  bool flip_sign = false;
  void step(LeafStep& s) const {
    if (flip_sign) scale_leaves(s, minus_rate_at(rate, s.count));
    else if constexpr (std::is_arithmetic_v<Rate>) scale_leaves(s, minus_rate(-static_cast<double>(rate)));
    else scale_leaves(s, Array(by_user(rate, s.count)));
  }
};

template <class G, class T>
using state_of = decltype(std::declval<const G&>().init(std::declval<const T&>()));

}  // namespace detail

/// A transformation that works leaf by leaf, as described by the functions that return one. Its state is R::State of the parameters.
template <class R> struct Leafwise {
  R rule;
  template <class T> using State = typename R::template State<T>;
  static constexpr bool uses_params = requires { R::uses_params; };
  /// A new array for every floating array of the tree, placed like it; count 0. Throws what creating arrays throws.
  template <shardarray::detail::JudgedTree T>
  [[nodiscard]] State<T> init(const T& parameters, Where w = Where::here()) const {
    const Site site(w);
    return detail::first_state<State<T>>(rule, parameters, w);
  }
  /// Returns (updates, next state). Throws, with the path, if the gradients do not fit the state, or the parameters if those are used:
  /// TreeError for other sizes or keys and for an array missing in one of them, ShapeError for another shape.
  template <shardarray::detail::JudgedTree T, class P = none_t>
  [[nodiscard]] std::pair<T, State<T>> update(const T& grads, const State<T>& state,
                                              const P& parameters = none, Where w = Where::here()) const {
    const Site site(w, R::name);
    if constexpr (shardarray::detail::Judged<detail::ParametersVerdict<T, P, uses_params>>::ok())
      return detail::leaf_update(rule, grads, state, parameters, shardarray::detail::call_site.function);
    else return {grads, state};
  }
};

/// Transformations in sequence, see chain().
template <shardarray::detail::FixedString name, class... G> struct Chain {
  std::tuple<G...> parts;
  template <class T> using State = std::tuple<detail::state_of<G, T>...>;
  static constexpr bool uses_params = (detail::uses_params<G> || ...);
  /// The states of the parts.
  template <shardarray::detail::JudgedTree T>
  [[nodiscard]] State<T> init(const T& parameters, Where w = Where::here()) const {
    const Site site(w);
    return std::apply([&](const G&... part) { return State<T>(detail::init_of(part, parameters, w)...); },
                      parts);
  }
  /// Every part transforms the updates of the previous one. Throws what the parts throw.
  template <shardarray::detail::JudgedTree T, class P = none_t>
  [[nodiscard]] std::pair<T, State<T>> update(const T& grads, const State<T>& state,
                                              const P& parameters = none, Where w = Where::here()) const {
    const Site site(w, name.text[0] ? name.text : nullptr);
    std::pair<T, State<T>> r(grads, state);
    if constexpr (shardarray::detail::Judged<detail::ParametersVerdict<T, P, uses_params>>::ok())
      [&]<std::size_t... K>(std::index_sequence<K...>) {
        ((std::tie(r.first, std::get<K>(r.second)) =
              detail::update_of(std::get<K>(parts), r.first, std::get<K>(state), parameters, w)),
         ...);
      }
    (std::index_sequence_for<G...>{});
    return r;
  }
};
/// Applies transformations in sequence: `chain(clip_by_global_norm(1), adamw(1e-3))`. The state is the tuple of their states. The empty
/// chain is the identity.
template <class... G> [[nodiscard]] Chain<"", G...> chain(G... parts) { return {{std::move(parts)...}}; }

/// Multiplies updates by a number.
[[nodiscard]] inline Leafwise<detail::RateRule<double, "scale.update">> scale(double step_size) {
  return {{step_size}};
}
/// Multiplies updates by the schedule's value for the number of updates so far.
template <Schedule F>
[[nodiscard]] Leafwise<detail::RateRule<F, "scale_by_schedule.update">> scale_by_schedule(F step_size) {
  return {{std::move(step_size)}};
}
/// Multiplies updates by -rate, or by rate unless flip_sign. The rate is a number or a schedule.
[[nodiscard]] inline Leafwise<detail::RateRule<double>> scale_by_learning_rate(double rate,
                                                                               bool flip_sign = true) {
  return {{rate, flip_sign}};
}
template <Schedule F>
[[nodiscard]] Leafwise<detail::RateRule<F>> scale_by_learning_rate(F rate, bool flip_sign = true) {
  return {{std::move(rate), flip_sign}};
}

}  // namespace shardarray::optim
