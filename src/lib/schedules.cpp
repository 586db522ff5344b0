// Schedules in float32; formulas and order of operations are optax's.
#include "shardarray/optim/schedules.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <numbers>

#include "base/count_text.h"
#include "lib/optim_leaves.h"
#include "shardarray/optim/scaling.h"

namespace shardarray::optim {

namespace detail {

// Counts saturate at the largest int32: steps beyond it never come.
static Array whole(std::int64_t v) {
  using Count = std::numeric_limits<std::int32_t>;
  const std::int64_t step = std::clamp<std::int64_t>(v, Count::min(), Count::max());
  return primitive::constant(DType::int32, primitive::bits_of(DType::int32, step), true);
}
// `v`, broadcast to the counts.
static Array value_at(const Array& count, double v) { return full(count.shape(), single(v), float32); }

Array joined(const Array& count, const std::vector<std::int64_t>& boundaries,
             shardarray::detail::FunctionRef<Array(std::size_t, const Array&)> f) {
  Array r = f(0, count);
  for (std::size_t k = 0; k < boundaries.size(); k++) {
    const Array from = whole(boundaries[k]);
    r = where(count < from, r, f(k + 1, count - from));
  }
  return r;
}
void check_boundaries(std::size_t schedules, std::size_t boundaries) {
  if (schedules != boundaries + 1)
    throw ShapeError(
        fmt::format("join_schedules: {}, {}. There is one boundary between each two. Correct them.",
                    count_text(schedules, "schedule"), count_text(boundaries, "boundary")));
}

}  // namespace detail

using detail::single;

Array ConstantSchedule::operator()(const Array& count, Where w) const {
  const Site site(w, "constant_schedule");
  return detail::value_at(count, value);
}

Array PolynomialSchedule::operator()(const Array& count, Where w) const {
  const Site site(w, "polynomial_schedule");
  if (transition_steps <= 0) return detail::value_at(count, init_value);
  const Array since = count - detail::whole(std::max<std::int64_t>(transition_begin, 0));
  const Array step = shardarray::clip(since, detail::whole(0), detail::whole(transition_steps));
  const Array left = single(1) - step.astype(float32) / single(static_cast<double>(transition_steps));
  return single(init_value - end_value) * (power == 1 ? left : shardarray::power(left, single(power))) +
         single(end_value);
}

CosineDecaySchedule cosine_decay_schedule(double init_value, std::int64_t decay_steps, double alpha,
                                          double exponent, Where w) {
  const Site site(w);
  detail::check_steps(decay_steps, "cosine_decay_schedule");
  return {init_value, decay_steps, alpha, exponent};
}
Array CosineDecaySchedule::operator()(const Array& count, Where w) const {
  const Site site(w, "cosine_decay_schedule");
  const Array step = minimum(count, detail::whole(decay_steps)).astype(float32);
  const Array angle = single(std::numbers::pi) * step / single(static_cast<double>(decay_steps));
  const Array decay = single(0.5) * (single(1) + cos(angle));
  return single(init_value) *
         (single(1 - alpha) * (exponent == 1 ? decay : power(decay, single(exponent))) + single(alpha));
}

Array ExponentialDecay::operator()(const Array& count, Where w) const {
  const Site site(w, "exponential_decay");
  if (transition_steps <= 0 || decay_rate == 0) return detail::value_at(count, init_value);
  const Array since = count - detail::whole(std::max<std::int64_t>(options.transition_begin, 0));
  Array part = since.astype(float32) / single(static_cast<double>(transition_steps));
  if (options.staircase) part = floor(part);
  const Array begun = since > detail::whole(0);
  // Before the first step the power may be infinite, and is not used.
  Array value = single(init_value) * power(single(decay_rate), where(begun, part, single(0)));
  if (!options.end_value) return value;
  const Array end = single(*options.end_value);
  return decay_rate < 1 ? maximum(value, end) : minimum(value, end);
}

static PiecewiseSchedule piecewise(PiecewiseSchedule::Between between, double init_value,
                                   const BoundariesAndScales& s, const char* function) {
  PiecewiseSchedule r{between, init_value, {}, {}};
  for (const auto& [boundary, scale] : s) {
    if (scale < 0)
      throw ShapeError(fmt::format("{}: the scale {} at step {}. Scales are not negative. Correct it.",
                                   function, scale, boundary));
    r.boundaries.push_back(boundary);
    r.scales.push_back(scale);
  }
  return r;
}
PiecewiseSchedule piecewise_constant_schedule(double init_value, const BoundariesAndScales& s, Where w) {
  const Site site(w);
  return piecewise(PiecewiseSchedule::Between::constant, init_value, s, "piecewise_constant_schedule");
}
PiecewiseSchedule piecewise_interpolate_schedule(PiecewiseSchedule::Between between, double init_value,
                                                 const BoundariesAndScales& s, Where w) {
  const Site site(w);
  return piecewise(between, init_value, s, "piecewise_interpolate_schedule");
}

// Interpolates between two values; `at` is from 0 to 1.
static Array between_values(PiecewiseSchedule::Between kind, double from, double to, const Array& at) {
  if (kind == PiecewiseSchedule::Between::linear) return single(to - from) * at + single(from);
  return single(to) + single((from - to) / 2) * (cos(single(std::numbers::pi) * at) + single(1));
}
Array PiecewiseSchedule::operator()(const Array& count, Where w) const {
  const Site site(
      w, between == Between::constant ? "piecewise_constant_schedule" : "piecewise_interpolate_schedule");
  std::vector<double> values = {init_value};
  for (const double scale : scales) values.push_back(values.back() * scale);
  Array r = detail::value_at(count, values.back());
  for (std::size_t k = boundaries.size(); k-- > 0;) {
    const std::int64_t begin = k == 0 ? 0 : boundaries[k - 1];
    const double steps = static_cast<double>(std::max<std::int64_t>(boundaries[k] - begin, 1));
    const Array at = (count - detail::whole(begin)).astype(float32) / single(steps);
    r = where(count < detail::whole(boundaries[k]),
              between == Between::constant ? single(values[k])
                                           : between_values(between, values[k], values[k + 1], at),
              r);
  }
  return r;
}

static void check_decay(std::int64_t warmup_steps, std::int64_t decay_steps, const char* function) {
  if (decay_steps <= warmup_steps)
    throw ShapeError(
        fmt::format("{}: {} of warmup, {} until the end of the decay. These count the warmup too, and are "
                    "more. Correct them.",
                    function, count_text(warmup_steps, "step"), decay_steps));
}
WarmupCosineDecaySchedule warmup_cosine_decay_schedule(double init_value, double peak_value,
                                                       std::int64_t warmup_steps, std::int64_t decay_steps,
                                                       double end_value, double exponent, Where w) {
  const Site site(w);
  check_decay(warmup_steps, decay_steps, "warmup_cosine_decay_schedule");
  const double alpha = peak_value == 0 ? 0 : end_value / peak_value;
  return {{linear_schedule(init_value, peak_value, warmup_steps),
           cosine_decay_schedule(peak_value, decay_steps - warmup_steps, alpha, exponent)},
          {warmup_steps}};
}
WarmupExponentialDecaySchedule warmup_exponential_decay_schedule(double init_value, double peak_value,
                                                                 std::int64_t warmup_steps,
                                                                 std::int64_t transition_steps,
                                                                 double decay_rate,
                                                                 const ExponentialDecayOptions& o) {
  return {{linear_schedule(init_value, peak_value, warmup_steps),
           exponential_decay(peak_value, transition_steps, decay_rate, o)},
          {warmup_steps}};
}

SgdrSchedule sgdr_schedule(const std::vector<SgdrCycle>& cycles, Where w) {
  const Site site(w);
  if (cycles.empty()) throw ShapeError("sgdr_schedule: no cycle. There is one at least. Give one.");
  SgdrSchedule r;
  std::int64_t begin = 0;
  for (const SgdrCycle& c : cycles) {
    check_decay(c.warmup_steps, c.decay_steps, "sgdr_schedule");
    if (!r.cycles.empty()) r.boundaries.push_back(begin);
    r.cycles.push_back(warmup_cosine_decay_schedule(c.init_value, c.peak_value, c.warmup_steps, c.decay_steps,
                                                    c.end_value, c.exponent));
    begin += c.decay_steps;
  }
  return r;
}
Array SgdrSchedule::operator()(const Array& count, Where w) const {
  const Site site(w, "sgdr_schedule");
  return detail::joined(count, boundaries, [&](std::size_t k, const Array& step) { return cycles[k](step); });
}

static std::int64_t part_of(std::int64_t steps, double part, const char* function) {
  if (!(part >= 0 && part <= 1))
    throw ShapeError(
        fmt::format("{}: the part {} of the steps. It is from 0 to 1. Correct it.", function, part));
  return static_cast<std::int64_t>(part * static_cast<double>(steps));
}

PiecewiseSchedule linear_onecycle_schedule(std::int64_t transition_steps, double peak_value,
                                           const OnecycleOptions& o, Where w) {
  const Site site(w);
  detail::check_steps(transition_steps, "linear_onecycle_schedule");
  const auto at = [&](double part) { return part_of(transition_steps, part, "linear_onecycle_schedule"); };
  BoundariesAndScales s;  // of equal boundaries the last one wins, as in optax
  s.insert_or_assign(at(o.pct_start), o.div_factor);
  s.insert_or_assign(at(o.pct_final), 1 / o.div_factor);
  s.insert_or_assign(transition_steps, 1 / o.final_div_factor);
  return piecewise(PiecewiseSchedule::Between::linear, peak_value / o.div_factor, s,
                   "linear_onecycle_schedule");
}
PiecewiseSchedule cosine_onecycle_schedule(std::int64_t transition_steps, double peak_value,
                                           const OnecycleOptions& o, Where w) {
  const Site site(w);
  detail::check_steps(transition_steps, "cosine_onecycle_schedule");
  BoundariesAndScales s;
  s.insert_or_assign(part_of(transition_steps, o.pct_start, "cosine_onecycle_schedule"), o.div_factor);
  s.insert_or_assign(transition_steps, 1 / (o.div_factor * o.final_div_factor));
  return piecewise(PiecewiseSchedule::Between::cosine, peak_value / o.div_factor, s,
                   "cosine_onecycle_schedule");
}

}  // namespace shardarray::optim
