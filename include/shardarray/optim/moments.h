// Adaptive optimizers without the learning rate: means of gradients divided by roots of means of their squares. Names, defaults and
// arithmetic are optax's; all follow the rules of transform.h. t is the number of updates including this one, mu and nu are means of g
// and g^2; hats denote division by 1 - b^t.
#pragma once
#include "shardarray/optim/transform.h"

namespace shardarray::optim {

// ---------------------------------------------------------------- states
/// The state of adam for parameters T, and of scale_by_adam, _adamax, _belief, _novograd, _radam and _yogi.
template <class T> struct AdamState {
  Array count;  ///< updates so far, int32
  T mu, nu;     ///< means of g and g^2, of the parameters' shapes; absent for non-floating ones
};
template <class T> using ScaleByAdamState = AdamState<T>;
template <class T> struct ScaleByAmsgradState {
  Array count;
  T mu, nu, nu_max;  ///< the largest nu (hat) so far
};
template <class T> struct ScaleByLionState {
  Array count;
  T mu;
};
template <class T> struct ScaleByRmsState {
  Array count;  ///< absent unless bias_correction
  T nu;
};
template <class T> struct ScaleByRStdDevState {
  Array count;  ///< absent unless bias_correction
  T mu, nu;
};
template <class T> struct ScaleByRssState { T sum_of_squares; };
template <class T> struct ScaleByAdaDeltaState {
  T e_g, e_x;  ///< means of squares: of the gradients, of the updates
};
template <class T> struct FactoredState {
  Array count;
  /// For factored parameters the means over the longest and the second longest dimension; for others v, of their full size. Unused ones
  /// are a single zero.
  T v_row, v_col, v;
};

// ---------------------------------------------------------------- options
/// Options of adam(), with optax's names and defaults.
struct AdamOptions {
  double b1 = 0.9, b2 = 0.999;  ///< decay of the means of g and g^2
  double eps = 1e-8;            ///< added to sqrt(mean of g^2)
  double eps_root = 0;          ///< added to the mean of g^2
  bool nesterov = false;        ///< looks one update ahead, see nadam()
};
/// Options of amsgrad().
struct AmsgradOptions {
  double b1 = 0.9, b2 = 0.999, eps = 1e-8, eps_root = 0;      ///< as adam's
  bool bias_correction_mu = true, bias_correction_nu = true;  ///< bias correction (hats) of mu, of nu
};
/// Options of adamax().
struct AdamaxOptions {
  double b1 = 0.9, b2 = 0.999;  ///< decay of the mean of g and of the largest |g|
  double eps = 1e-8;            ///< added to |g|
};
/// Options of radam().
struct RadamOptions {
  double b1 = 0.9, b2 = 0.999, eps = 1e-8, eps_root = 0;  ///< as adam's
  double threshold = 5;   ///< while the length of the mean of g^2 is below it, updates are mu hat alone
  bool nesterov = false;  ///< as adam's
};
/// Options of adabelief().
struct AdabeliefOptions {
  double b1 = 0.9, b2 = 0.999;  ///< decay of the means of g and (g - mu)^2
  double eps = 1e-16;           ///< added to the root
  double eps_root = 1e-16;      ///< added to the mean in the state, in every update
  bool nesterov = false;        ///< as adam's
};
/// Options of scale_by_yogi().
struct YogiOptions {
  double b1 = 0.9, b2 = 0.999, eps = 1e-3, eps_root = 0;  ///< as adam's
  double initial_accumulator_value = 1e-6;                ///< initial mu and nu
};
/// Options of scale_by_novograd().
struct ScaleByNovogradOptions {
  double b1 = 0.9, b2 = 0.25;       ///< decay of the sum of directions, of the mean of |g|^2
  double eps = 1e-8, eps_root = 0;  ///< as adam's
  double weight_decay = 0;          ///< of the parameters, added to each direction
};
/// Options of scale_by_rms() and scale_by_stddev().
struct RmsOptions {
  double decay = 0.9;            ///< of the means
  double eps = 1e-8;             ///< added to the mean of g^2
  double initial_scale = 0;      ///< the initial mean of g^2
  bool eps_in_sqrt = true;       ///< otherwise eps is added to the root
  bool bias_correction = false;  ///< bias correction (hats) of the means
};
/// Options of scale_by_rss().
struct RssOptions {
  double initial_accumulator_value = 0.1;  ///< the initial sum
  double eps = 1e-7;                       ///< added to the sum
};
/// Options of scale_by_factored_rms().
struct FactoredRmsOptions {
  bool factored = true;          ///< keep two means instead of one of the parameter's full size
  double decay_rate = 0.8;       ///< the mean's decay is 1 - t^-decay_rate
  std::int64_t step_offset = 0;  ///< subtracted from t
  std::int64_t min_dim_size_to_factor =
      128;                 ///< only parameters whose two longest dimensions have at least that size
  double epsilon = 1e-30;  ///< added to g^2
};

// ---------------------------------------------------------------- rules
namespace detail {

struct AdamRule {
  static constexpr const char* name = "scale_by_adam.update";
  template <class T> using State = AdamState<T>;
  AdamOptions o;
  SHARDARRAY_API void step(LeafStep& s) const;
};
struct AmsgradRule {
  static constexpr const char* name = "scale_by_amsgrad.update";
  template <class T> using State = ScaleByAmsgradState<T>;
  AmsgradOptions o;
  SHARDARRAY_API void step(LeafStep& s) const;
};
struct AdamaxRule {
  static constexpr const char* name = "scale_by_adamax.update";
  template <class T> using State = AdamState<T>;
  AdamaxOptions o;
  SHARDARRAY_API void step(LeafStep& s) const;
};
struct RadamRule {
  static constexpr const char* name = "scale_by_radam.update";
  template <class T> using State = AdamState<T>;
  RadamOptions o;
  SHARDARRAY_API void step(LeafStep& s) const;
};
struct BeliefRule {
  static constexpr const char* name = "scale_by_belief.update";
  template <class T> using State = AdamState<T>;
  AdabeliefOptions o;
  SHARDARRAY_API void step(LeafStep& s) const;
};
struct YogiRule {
  static constexpr const char* name = "scale_by_yogi.update";
  template <class T> using State = AdamState<T>;
  YogiOptions o;
  Slots first(const Slots& parameters, std::size_t) const {
    return filled_for(parameters, o.initial_accumulator_value);
  }
  SHARDARRAY_API void step(LeafStep& s) const;
};
struct NovogradRule {
  static constexpr const char* name = "scale_by_novograd.update";
  static constexpr bool uses_params = true;
  static constexpr std::size_t shaped = 1;  // nu has one number per parameter array
  template <class T> using State = AdamState<T>;
  ScaleByNovogradOptions o;
  SHARDARRAY_API Slots first(const Slots& parameters, std::size_t k) const;
  SHARDARRAY_API void step(LeafStep& s) const;
};
struct LionRule {
  static constexpr const char* name = "scale_by_lion.update";
  template <class T> using State = ScaleByLionState<T>;
  double b1 = 0.9, b2 = 0.99;
  SHARDARRAY_API void step(LeafStep& s) const;
};
struct RmsRule {
  static constexpr const char* name = "scale_by_rms.update";
  template <class T> using State = ScaleByRmsState<T>;
  RmsOptions o;
  bool counts() const { return o.bias_correction; }
  Slots first(const Slots& parameters, std::size_t) const { return filled_for(parameters, o.initial_scale); }
  SHARDARRAY_API void step(LeafStep& s) const;
};
struct StdDevRule {
  static constexpr const char* name = "scale_by_stddev.update";
  template <class T> using State = ScaleByRStdDevState<T>;
  RmsOptions o;
  bool counts() const { return o.bias_correction; }
  Slots first(const Slots& parameters, std::size_t k) const {
    return filled_for(parameters, k == 0 ? 0 : o.initial_scale);
  }
  SHARDARRAY_API void step(LeafStep& s) const;
};
struct RssRule {
  static constexpr const char* name = "scale_by_rss.update";
  template <class T> using State = ScaleByRssState<T>;
  RssOptions o;
  Slots first(const Slots& parameters, std::size_t) const {
    return filled_for(parameters, o.initial_accumulator_value);
  }
  SHARDARRAY_API void step(LeafStep& s) const;
};
struct AdaDeltaRule {
  static constexpr const char* name = "scale_by_adadelta.update";
  template <class T> using State = ScaleByAdaDeltaState<T>;
  double rho = 0.9, eps = 1e-6;
  SHARDARRAY_API void step(LeafStep& s) const;
};
struct FactoredRule {
  static constexpr const char* name = "scale_by_factored_rms.update";
  static constexpr bool uses_params = true;
  static constexpr std::size_t shaped = 0;
  template <class T> using State = FactoredState<T>;
  FactoredRmsOptions o;
  SHARDARRAY_API Slots first(const Slots& parameters, std::size_t k) const;
  SHARDARRAY_API void step(LeafStep& s) const;
};

}  // namespace detail

// ---------------------------------------------------------------- the transformations
/// mu hat / (sqrt(nu hat + eps_root) + eps); with nesterov, mu hat is replaced by b1 * mu / (1 - b1^(t+1)) + (1 - b1) * g / (1 - b1^t).
/// Source: D. Kingma, J. Ba, 2015; T. Dozat, 2016.
[[nodiscard]] inline Leafwise<detail::AdamRule> scale_by_adam(const AdamOptions& o = {}) { return {{o}}; }
/// As adam, with the largest nu hat so far. Source: S. Reddi, S. Kale, S. Kumar, 2018.
[[nodiscard]] inline Leafwise<detail::AmsgradRule> scale_by_amsgrad(const AmsgradOptions& o = {}) {
  return {{o}};
}
/// mu hat / nu, where nu = max(|g| + eps, b2 * nu). Source: D. Kingma, J. Ba, 2015.
[[nodiscard]] inline Leafwise<detail::AdamaxRule> scale_by_adamax(const AdamaxOptions& o = {}) {
  return {{o}};
}
/// As adam, times a variance rectification factor for nu once enough gradients were seen; until then mu hat. Source: L. Liu and others,
/// 2020.
[[nodiscard]] inline Leafwise<detail::RadamRule> scale_by_radam(const RadamOptions& o = {}) { return {{o}}; }
/// As adam, where nu is a mean of (g - mu)^2. Source: J. Zhuang and others, 2020.
[[nodiscard]] inline Leafwise<detail::BeliefRule> scale_by_belief(const AdabeliefOptions& o = {}) {
  return {{o}};
}
/// As adam, with nu - (1 - b2) * sign(nu - g^2) * g^2 as the next nu. Source: M. Zaheer and others, 2018.
[[nodiscard]] inline Leafwise<detail::YogiRule> scale_by_yogi(const YogiOptions& o = {}) { return {{o}}; }
/// mu = b1 * mu + g / (sqrt(nu + eps_root) + eps) + weight_decay * parameter, where nu is a mean of |g|^2, one number per array. Uses the
/// parameters. Source: B. Ginsburg and others, 2019.
[[nodiscard]] inline Leafwise<detail::NovogradRule> scale_by_novograd(const ScaleByNovogradOptions& o = {}) {
  return {{o}};
}
/// The sign of (1 - b1) * g + b1 * mu; mu is then updated with b2. Source: X. Chen and others, 2023.
[[nodiscard]] inline Leafwise<detail::LionRule> scale_by_lion(double b1 = 0.9, double b2 = 0.99) {
  return {{b1, b2}};
}
/// g / sqrt(nu + eps). Source: G. Hinton, T. Tieleman, 2012.
[[nodiscard]] inline Leafwise<detail::RmsRule> scale_by_rms(const RmsOptions& o = {}) { return {{o}}; }
/// g / sqrt(nu - mu^2 + eps).
[[nodiscard]] inline Leafwise<detail::StdDevRule> scale_by_stddev(const RmsOptions& o = {}) { return {{o}}; }
/// g / sqrt(sum of all g^2 + eps), 0 where that sum is 0. Source: J. Duchi, E. Hazan, Y. Singer, 2011.
[[nodiscard]] inline Leafwise<detail::RssRule> scale_by_rss(const RssOptions& o = {}) { return {{o}}; }
/// g * sqrt(e_x + eps) / sqrt(e_g + eps), with decay rho. Source: M. Zeiler, 2012.
[[nodiscard]] inline Leafwise<detail::AdaDeltaRule> scale_by_adadelta(double rho = 0.9, double eps = 1e-6) {
  return {{rho, eps}};
}
/// g divided by the root of a mean of g^2 + epsilon; for large matrices only the means of rows and columns are kept. Uses the parameters.
/// Source: N. Shazeer, M. Stern, 2018.
[[nodiscard]] inline Leafwise<detail::FactoredRule> scale_by_factored_rms(const FactoredRmsOptions& o = {}) {
  return {{o}};
}

}  // namespace shardarray::optim
