// Gradient transformations, as in optax: values with
//
//     init(parameters)                      the first state, a tree
//     update(gradients, state, parameters)  the pair (updates, next state)
//
// A class of yours that has both is one, and stands in chain() beside those of the library. States are plain structs (of a chain:
// tuples) of arrays and of trees like the parameters, so jit, donation, filter_shard and tree_paths take them as they take models.
// Absent arrays stay absent everywhere. States keep the dtypes that they have at first, those of the parameters (16-bit ones too);
// updates are computed in the dtypes of gradients and states, promoted as operators do, and numbers of the options are rounded to
// the dtype of what they are combined with.
#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <tuple>
#include <utility>

#include "shardarray/detail/function.h"
#include "shardarray/tree.h"

namespace shardarray::optim {

/// A number that changes from update to update: a function of the number of updates so far (an int32 scalar, 0 at the first).
template <class F>
concept Schedule = !std::is_arithmetic_v<F> && std::is_invocable_r_v<Array, const F&, const Array&>;

/// A gradient transformation of parameters T.
template <class G, class T>
concept GradientTransformation = requires(const G& g, const T& t) {
  { g.update(t, g.init(t), t) } -> std::convertible_to<std::pair<T, decltype(g.init(t))>>;
};

/// Of what keeps nothing.
struct EmptyState {};
/// Of what follows a schedule.
struct ScaleByScheduleState {
  Array count;  ///< updates so far, int32; stays at the largest one
};

namespace detail {

/// The arrays of a tree, absent ones too: one per place.
using Slots = std::vector<Array>;

/// One update of all leaves. A rule makes updates of the gradients, and the next state of the state, in place; places without a
/// gradient are passed over.
struct LeafStep {
  Slots updates;                ///< the gradients at first
  std::vector<Slots> state;     ///< the state's trees, in their order
  Slots params = {};            ///< of rules with `uses_params`
  Array count = {}, next = {};  ///< updates so far, and with this one; absent where the state has no count
};

/// New zeros, or `value`, for each floating array of a list, placed as that array is; absent for the others.
[[nodiscard]] SHARDARRAY_API Slots zeros_for(Slots parameters);
[[nodiscard]] SHARDARRAY_API Slots filled_for(Slots parameters, double value);
[[nodiscard]] SHARDARRAY_API Array zero_count(Where w);
/// count + 1; stays at the largest int32.
[[nodiscard]] SHARDARRAY_API Array next_count(const Array& count);
[[nodiscard]] SHARDARRAY_API Array minus_rate(double rate);
[[nodiscard]] SHARDARRAY_API Array minus_rate(const Array& rate);
/// Calls a function of the user, whose lines are its own: a schedule, a mask.
template <class F, class... A> [[nodiscard]] decltype(auto) by_user(const F& f, A&&... arguments) {
  const shardarray::detail::UserSite user;
  return std::invoke(f, std::forward<A>(arguments)...);
}
template <class Rate> [[nodiscard]] Array minus_rate_at(const Rate& rate, const Array& count) {
  if constexpr (std::is_arithmetic_v<Rate>) return minus_rate(static_cast<double>(rate));
  else return minus_rate(Array(by_user(rate, count)));
}
/// init and update of another transformation: one of the library for the line `w`, one of the user for its own lines.
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
/// Casts the states behind an update to the dtypes that they had.
SHARDARRAY_API void keep_dtypes(std::vector<Slots>& next, const std::vector<Slots>& before);
/// Multiplies all updates, each in its own dtype.
SHARDARRAY_API void scale_leaves(LeafStep& s, const Array& factor);

/// Throws with the path: TreeError where only one of both trees has an array, ShapeError where their shapes differ.
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
/// Does a transformation say that it uses the parameters?
template <class G> inline constexpr bool uses_params = false;
template <class G>
requires requires { G::uses_params; }
inline constexpr bool uses_params<G> = G::uses_params;

/// The parameters' slots; those without a gradient do not matter.
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

/// States that count have that field first; all others are trees like the parameters.
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

/// What a rule may have beside `step` and `State`: `counts()`, is there a count at all; `first(parameters, k)`, the first values of
/// tree k (default: zeros); `kept()`, how many of the trees have arrays; `shaped`, how many have the gradients' shapes.
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

/// Multiplies by a number or a schedule, or by minus that.
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

/// A transformation that works leaf by leaf; the functions that return one say what it does. It keeps an R::State of the
/// parameters.
template <class R> struct Leafwise {
  R rule;
  template <class T> using State = typename R::template State<T>;
  static constexpr bool uses_params = requires { R::uses_params; };
  /// A new array for every floating array of the tree, placed as it is; count 0. Throws what making arrays throws.
  template <shardarray::detail::JudgedTree T>
  [[nodiscard]] State<T> init(const T& parameters, Where w = Where::here()) const {
    const Site site(w);
    return detail::first_state<State<T>>(rule, parameters, w);
  }
  /// (updates, next state). Throws with the path where the gradients do not fit the state, or the parameters where those are used:
  /// TreeError for other sizes or keys and for an array that is missing in one of them, ShapeError for another shape.
  template <shardarray::detail::JudgedTree T, class P = none_t>
  [[nodiscard]] std::pair<T, State<T>> update(const T& grads, const State<T>& state,
                                              const P& parameters = none, Where w = Where::here()) const {
    const Site site(w, R::name);
    if constexpr (shardarray::detail::Judged<detail::ParametersVerdict<T, P, uses_params>>::ok())
      return detail::leaf_update(rule, grads, state, parameters, shardarray::detail::call_site.function);
    else return {grads, state};
  }
};

/// Transformations one after another, see chain().
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
  /// Every part takes the updates of the one before it. Throws what they throw.
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
/// `chain(clip_by_global_norm(1), adamw(1e-3))`: each takes the updates of the one before. The state is the tuple of theirs. Of
/// nothing: the identity.
template <class... G> [[nodiscard]] Chain<"", G...> chain(G... parts) { return {{std::move(parts)...}}; }

/// Multiplies by a number.
[[nodiscard]] inline Leafwise<detail::RateRule<double, "scale.update">> scale(double step_size) {
  return {{step_size}};
}
/// Multiplies by what the schedule gives for the number of updates so far.
template <Schedule F>
[[nodiscard]] Leafwise<detail::RateRule<F, "scale_by_schedule.update">> scale_by_schedule(F step_size) {
  return {{std::move(step_size)}};
}
/// Multiplies by -rate, or by rate unless flip_sign: a number, or a schedule.
[[nodiscard]] inline Leafwise<detail::RateRule<double>> scale_by_learning_rate(double rate,
                                                                               bool flip_sign = true) {
  return {{rate, flip_sign}};
}
template <Schedule F>
[[nodiscard]] Leafwise<detail::RateRule<F>> scale_by_learning_rate(F rate, bool flip_sign = true) {
  return {{std::move(rate), flip_sign}};
}

}  // namespace shardarray::optim
