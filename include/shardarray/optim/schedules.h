// Schedules, as in optax: functions of the number of updates so far, starting at 0, for learning rates and other numbers. All return a
// float32 scalar (for a vector of counts a vector), computed in float32. They are values: those of this header are plain structs, yours
// may be lambdas. `schedule(100)` is the value at step 100.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "shardarray/detail/path.h"
#include "shardarray/optim/transform.h"

namespace shardarray::optim {

/// See constant_schedule().
struct SHARDARRAY_API ConstantSchedule {
  double value;
  [[nodiscard]] Array operator()(const Array& count, Where w = Where::here()) const;
};
/// See polynomial_schedule().
struct SHARDARRAY_API PolynomialSchedule {
  double init_value, end_value, power;
  std::int64_t transition_steps, transition_begin;
  [[nodiscard]] Array operator()(const Array& count, Where w = Where::here()) const;
};
/// See cosine_decay_schedule().
struct SHARDARRAY_API CosineDecaySchedule {
  double init_value;
  std::int64_t decay_steps;
  double alpha, exponent;
  [[nodiscard]] Array operator()(const Array& count, Where w = Where::here()) const;
};
/// Options of exponential_decay().
struct ExponentialDecayOptions {
  std::int64_t transition_begin = 0;  ///< the value is constant until this step
  bool staircase = false;             ///< change only every transition_steps
  std::optional<double> end_value =
      std::nullopt;  ///< the limit: a lower bound, or an upper one for a rate of 1 or more
};
/// See exponential_decay().
struct SHARDARRAY_API ExponentialDecay {
  double init_value;
  std::int64_t transition_steps;
  double decay_rate;
  ExponentialDecayOptions options;
  [[nodiscard]] Array operator()(const Array& count, Where w = Where::here()) const;
};
/// Steps and the factors applied to the value there, in ascending order.
using BoundariesAndScales = std::map<std::int64_t, double>;
/// See piecewise_constant_schedule() and piecewise_interpolate_schedule().
struct SHARDARRAY_API PiecewiseSchedule {
  enum class Between : std::uint8_t { constant, linear, cosine };  ///< the shape between two steps
  Between between;
  double init_value;
  std::vector<std::int64_t> boundaries;
  std::vector<double> scales;
  [[nodiscard]] Array operator()(const Array& count, Where w = Where::here()) const;
};

namespace detail {
/// Schedule 0 up to the first boundary, then schedule k of the steps since boundary k - 1.
[[nodiscard]] SHARDARRAY_API Array
joined(const Array& count, const std::vector<std::int64_t>& boundaries,
       shardarray::detail::FunctionRef<Array(std::size_t, const Array&)> f);
/// Throws ShapeError unless there is one boundary fewer than schedules.
SHARDARRAY_API void check_boundaries(std::size_t schedules, std::size_t boundaries);
}  // namespace detail
/// See join_schedules().
template <class... F> struct JoinedSchedule {
  std::tuple<F...> schedules;
  std::vector<std::int64_t> boundaries;
  [[nodiscard]] Array operator()(const Array& count, Where w = Where::here()) const {
    const Site site(w);
    return detail::joined(count, boundaries, [&](std::size_t k, const Array& step) {
      Array r;
      std::size_t at = 0;
      std::apply([&](const F&... f) { ((at++ == k ? void(r = detail::by_user(f, step)) : void()), ...); },
                 schedules);
      return r;
    });
  }
};
/// A linear warmup followed by a decay.
using WarmupCosineDecaySchedule = JoinedSchedule<PolynomialSchedule, CosineDecaySchedule>;
using WarmupExponentialDecaySchedule = JoinedSchedule<PolynomialSchedule, ExponentialDecay>;
/// One cycle of sgdr_schedule(): the arguments of warmup_cosine_decay_schedule().
struct SgdrCycle {
  double init_value, peak_value;
  std::int64_t warmup_steps, decay_steps;
  double end_value = 0, exponent = 1;
};
/// See sgdr_schedule().
struct SHARDARRAY_API SgdrSchedule {
  std::vector<WarmupCosineDecaySchedule> cycles;
  std::vector<std::int64_t> boundaries;
  [[nodiscard]] Array operator()(const Array& count, Where w = Where::here()) const;
};

/// Always `value`.
[[nodiscard]] inline ConstantSchedule constant_schedule(double value) { return {value}; }
/// From init_value to end_value in transition_steps steps, starting at transition_begin: (init_value - end_value) * (1 - step /
/// transition_steps)^power + end_value. Always init_value if transition_steps is 0 or less.
[[nodiscard]] inline PolynomialSchedule polynomial_schedule(double init_value, double end_value, double power,
                                                            std::int64_t transition_steps,
                                                            std::int64_t transition_begin = 0) {
  return {init_value, end_value, power, transition_steps, transition_begin};
}
/// The same with power 1.
[[nodiscard]] inline PolynomialSchedule linear_schedule(double init_value, double end_value,
                                                        std::int64_t transition_steps,
                                                        std::int64_t transition_begin = 0) {
  return {init_value, end_value, 1, transition_steps, transition_begin};
}
/// init_value * ((1 - alpha) * (0.5 * (1 + cos(pi * step / decay_steps)))^exponent + alpha): decays from init_value to
/// alpha * init_value, and stays there. Throws ShapeError for decay_steps < 1. Source: I. Loshchilov, F. Hutter, 2017.
[[nodiscard]] SHARDARRAY_API CosineDecaySchedule cosine_decay_schedule(double init_value,
                                                                       std::int64_t decay_steps,
                                                                       double alpha = 0, double exponent = 1,
                                                                       Where w = Where::here());
/// init_value * decay_rate^(step / transition_steps). Always init_value if transition_steps is 0 or less, or the rate is 0.
[[nodiscard]] inline ExponentialDecay exponential_decay(double init_value, std::int64_t transition_steps,
                                                        double decay_rate,
                                                        const ExponentialDecayOptions& o = {}) {
  return {init_value, transition_steps, decay_rate, o};
}
/// init_value, multiplied by each factor from its step on: `piecewise_constant_schedule(0.1, {{1000, 0.1}, {2000, 0.1}})`. Throws
/// ShapeError for a negative factor.
[[nodiscard]] SHARDARRAY_API PiecewiseSchedule piecewise_constant_schedule(double init_value,
                                                                           const BoundariesAndScales& s = {},
                                                                           Where w = Where::here());
/// The same, interpolating between two steps: linearly, or along a cosine. Throws ShapeError for a negative factor.
[[nodiscard]] SHARDARRAY_API PiecewiseSchedule
piecewise_interpolate_schedule(PiecewiseSchedule::Between between, double init_value,
                               const BoundariesAndScales& s = {}, Where w = Where::here());
/// Schedules in sequence: `join_schedules(std::tuple(linear_schedule(0, 1, 100), constant_schedule(1)), {100})`; each counts from its
/// boundary. Throws ShapeError unless there is one boundary fewer than schedules.
template <Schedule... F>
[[nodiscard]] JoinedSchedule<F...> join_schedules(std::tuple<F...> schedules,
                                                  std::vector<std::int64_t> boundaries,
                                                  Where w = Where::here()) {
  const Site site(w);
  detail::check_boundaries(sizeof...(F), boundaries.size());
  return {std::move(schedules), std::move(boundaries)};
}
/// linear_schedule(init_value, peak_value, warmup_steps).
[[nodiscard]] inline PolynomialSchedule warmup_constant_schedule(double init_value, double peak_value,
                                                                 std::int64_t warmup_steps) {
  return linear_schedule(init_value, peak_value, warmup_steps);
}
/// Linear to peak_value in warmup_steps, then a cosine to end_value, reached at decay_steps (counted from 0). Throws ShapeError unless
/// decay_steps > warmup_steps.
[[nodiscard]] SHARDARRAY_API WarmupCosineDecaySchedule warmup_cosine_decay_schedule(
    double init_value, double peak_value, std::int64_t warmup_steps, std::int64_t decay_steps,
    double end_value = 0, double exponent = 1, Where w = Where::here());
/// Linear to peak_value in warmup_steps, then exponential_decay(), counted from there.
[[nodiscard]] SHARDARRAY_API WarmupExponentialDecaySchedule warmup_exponential_decay_schedule(
    double init_value, double peak_value, std::int64_t warmup_steps, std::int64_t transition_steps,
    double decay_rate, const ExponentialDecayOptions& o = {});
/// Warm restarts: a sequence of warmup_cosine_decay_schedule(), each lasting its decay_steps, the last without end. Throws ShapeError if
/// there are no cycles, and as those do.
[[nodiscard]] SHARDARRAY_API SgdrSchedule sgdr_schedule(const std::vector<SgdrCycle>& cycles,
                                                        Where w = Where::here());
/// Options of the onecycle schedules, with optax's names and defaults.
struct OnecycleOptions {
  double pct_start = 0.3;         ///< fraction of the steps until peak_value
  double pct_final = 0.85;        ///< linear only: fraction of the steps until peak_value / div_factor again
  double div_factor = 25;         ///< starts at peak_value / div_factor
  double final_div_factor = 1e4;  ///< ends at peak_value / (div_factor * final_div_factor)
};
/// Rises to peak_value and falls again, linearly or along a cosine. Throws ShapeError for transition_steps < 1 and for fractions outside
/// of [0, 1]. Source: L. Smith, N. Topin, 2018.
[[nodiscard]] SHARDARRAY_API PiecewiseSchedule linear_onecycle_schedule(std::int64_t transition_steps,
                                                                        double peak_value,
                                                                        const OnecycleOptions& o = {},
                                                                        Where w = Where::here());
[[nodiscard]] SHARDARRAY_API PiecewiseSchedule cosine_onecycle_schedule(std::int64_t transition_steps,
                                                                        double peak_value,
                                                                        const OnecycleOptions& o = {},
                                                                        Where w = Where::here());

}  // namespace shardarray::optim
