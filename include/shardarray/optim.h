// Optimizers, as in optax: values with init(parameters) and update(gradients, state), which returns (updates, next state). Add
// the updates with apply_updates(). Absent arrays stay absent everywhere. Updates and states have the dtypes of the gradients
// (16-bit ones too), and are computed in them; numbers of the options are rounded to them once.
//
// init and update throw nothing of their own but TreeError: shapes are broadcast and dtypes promoted as operators do.
#pragma once
#include <concepts>
#include <utility>

#include "shardarray/tree.h"

namespace shardarray::optim {

/// A learning rate that changes: a function of the number of updates so far (an int32 scalar, 0 at the
/// first).
template <class F>
concept Schedule = !std::is_arithmetic_v<F> && std::is_invocable_r_v<Array, const F&, const Array&>;

/// Options of adam(), of optax's names and defaults.
struct AdamOptions {
  double b1 = 0.9, b2 = 0.999;  ///< decay of the means of g and g^2
  double eps = 1e-8;            ///< added to sqrt(mean of g^2)
};
/// Options of sgd(), of optax's names and defaults.
struct SgdOptions {
  double momentum = 0;  ///< decay of the trace of gradients; 0: no trace
  bool nesterov =
      false;  ///< the update is g + momentum * trace instead of the trace; nothing without momentum
};
/// What adam keeps of parameters T.
template <class T> struct AdamState {
  Array count;  ///< updates so far, int32
  T mu, nu;     ///< means of g and g^2, of the parameters' shapes; absent where those are not floating
};
/// What sgd keeps of parameters T.
template <class T> struct SgdState {
  Array count;  ///< updates so far, int32; absent unless the learning rate is a schedule
  T trace;      ///< absent without momentum
};

namespace detail {

/// New zeros for each floating array of a list, placed as that array is; absent for the others.
[[nodiscard]] SHARDARRAY_API std::vector<Array> zeros_for(std::vector<Array> parameters);
[[nodiscard]] SHARDARRAY_API Array zero_count(Where w);
/// count + 1; stays at the largest int32.
[[nodiscard]] SHARDARRAY_API Array next_count(const Array& count);
[[nodiscard]] SHARDARRAY_API Array minus_rate(double rate);
[[nodiscard]] SHARDARRAY_API Array minus_rate(const Array& rate);

struct Moments {
  std::vector<Array> updates, mu, nu;
};
/// One Adam update of all leaves; absent gradients give absent results.
SHARDARRAY_API Moments adam_update(const std::vector<Array>& grads, const std::vector<Array>& mu,
                                   const std::vector<Array>& nu, const Array& count, const Array& minus_rate,
                                   const AdamOptions& o);
struct Traces {
  std::vector<Array> updates, trace;
};
SHARDARRAY_API Traces sgd_update(const std::vector<Array>& grads, const std::vector<Array>& trace,
                                 const Array& minus_rate, const SgdOptions& o);
/// Throws with the path: TreeError where only one of both trees has an array, ShapeError where their shapes differ.
template <class T>
void check_partners(const T& grads, const std::vector<Array>& state, const char* function) {
  std::size_t i = 0;
  shardarray::detail::each_leaf(grads, [&](const Array& a, const Path& p) {
    const Array& mine = state[i++];
    if (a.has_value() != mine.has_value())
      shardarray::detail::throw_missing_leaf(p, a.has_value() ? 1 : 0, function);
    if (a.has_value()) shardarray::detail::check_leaf_shape(mine, a, "gradient", false, p, function);
  });
}
/// The slots of a state's tree, of the structure of the gradients.
template <class T>
[[nodiscard]] std::vector<Array> slots_of_state(const T& grads, const T& state, const char* function) {
  auto structure = shardarray::detail::structure(grads, false);
  return shardarray::detail::slots_like(structure, state, 1, function);
}
template <class T> T with_slots(T tree, const std::vector<Array>& next) {
  shardarray::detail::set_slots(tree, next);
  return tree;
}
template <class Rate> [[nodiscard]] Array minus_rate_at(const Rate& rate, const Array& count) {
  if constexpr (std::is_arithmetic_v<Rate>) return minus_rate(static_cast<double>(rate));
  else return minus_rate(Array(rate(count)));
}

}  // namespace detail

/// Adam (D. Kingma, J. Ba, 2015): -rate * m / (sqrt(v) + eps), m and v the means of g and g^2 divided by 1 - b^t, t updates with
/// this one.
template <class Rate = double> struct Adam {
  Rate learning_rate;  ///< a number, or a Schedule
  AdamOptions options;
  /// Zero means for every floating array of the tree, placed as it is; count 0.
  template <Tree T> [[nodiscard]] AdamState<T> init(const T& parameters, Where w = Where::here()) const {
    const Site site(w, "adam.init");
    auto zeros = [&] {
      return detail::with_slots(parameters, detail::zeros_for(shardarray::detail::slots(parameters)));
    };
    return {detail::zero_count(w), zeros(), zeros()};
  }
  /// (updates, next state). Throws with the path where the gradients do not fit the state: TreeError for other sizes or keys and
  /// for an array in one of both only, ShapeError for another shape. Parameters are not used.
  template <Tree T, class P = none_t>
  [[nodiscard]] std::pair<T, AdamState<T>> update(const T& grads, const AdamState<T>& state, const P& = none,
                                                  Where w = Where::here()) const {
    const Site site(w, "adam.update");
    const auto mu = detail::slots_of_state(grads, state.mu, "adam.update");
    const auto nu = detail::slots_of_state(grads, state.nu, "adam.update");
    detail::check_partners(grads, mu, "adam.update");
    detail::check_partners(grads, nu, "adam.update");
    const Array rate = detail::minus_rate_at(learning_rate, state.count);
    const auto next =
        detail::adam_update(shardarray::detail::slots(grads), mu, nu, state.count, rate, options);
    return {detail::with_slots(grads, next.updates),
            {detail::next_count(state.count), detail::with_slots(state.mu, next.mu),
             detail::with_slots(state.nu, next.nu)}};
  }
};

/// Stochastic gradient descent: -rate * g, or -rate * trace with trace = g + momentum * trace.
template <class Rate = double> struct Sgd {
  Rate learning_rate;  ///< a number, or a Schedule
  SgdOptions options;
  /// Zero traces for every floating array of the tree where there is momentum, count 0 where the rate is a schedule.
  template <Tree T> [[nodiscard]] SgdState<T> init(const T& parameters, Where w = Where::here()) const {
    const Site site(w, "sgd.init");
    std::vector<Array> slots = shardarray::detail::slots(parameters);
    slots = options.momentum != 0 ? detail::zeros_for(std::move(slots)) : std::vector<Array>(slots.size());
    return {std::is_arithmetic_v<Rate> ? Array() : detail::zero_count(w),
            detail::with_slots(parameters, slots)};
  }
  /// As adam's; without momentum only sizes and keys are compared.
  template <Tree T, class P = none_t>
  [[nodiscard]] std::pair<T, SgdState<T>> update(const T& grads, const SgdState<T>& state, const P& = none,
                                                 Where w = Where::here()) const {
    const Site site(w, "sgd.update");
    const auto trace = detail::slots_of_state(grads, state.trace, "sgd.update");
    if (options.momentum != 0) detail::check_partners(grads, trace, "sgd.update");
    const Array rate = detail::minus_rate_at(learning_rate, state.count);
    const auto next = detail::sgd_update(shardarray::detail::slots(grads), trace, rate, options);
    return {detail::with_slots(grads, next.updates),
            {state.count.has_value() ? detail::next_count(state.count) : Array(),
             detail::with_slots(state.trace, next.trace)}};
  }
};

/// optax's names: `adam(1e-3)`, `sgd([](const Array& count) { return 0.1 / (1 + count); }, {.momentum = 0.9})`. Rates are not
/// checked.
[[nodiscard]] inline Adam<> adam(double learning_rate, const AdamOptions& o = {}) {
  return {learning_rate, o};
}
template <Schedule F> [[nodiscard]] Adam<F> adam(F learning_rate, const AdamOptions& o = {}) {
  return {std::move(learning_rate), o};
}
[[nodiscard]] inline Sgd<> sgd(double learning_rate, const SgdOptions& o = {}) { return {learning_rate, o}; }
template <Schedule F> [[nodiscard]] Sgd<F> sgd(F learning_rate, const SgdOptions& o = {}) {
  return {std::move(learning_rate), o};
}

}  // namespace shardarray::optim
