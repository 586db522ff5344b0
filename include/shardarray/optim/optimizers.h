// The optimizers: chains of the transformations of moments.h and scaling.h, as in optax. Add the updates with apply_updates():
//
//     const auto optimizer = optim::adamw(optim::cosine_decay_schedule(3e-4, 1000), {.weight_decay = 0.01});
//     auto state = optimizer.init(filter(model, is_inexact_array));
//     auto [updates, next] = optimizer.update(grads, state, model);
//     model = apply_updates(model, updates);
//
// Learning rates are numbers or schedules (schedules.h); rates and options are not checked. The state of a chain is a tuple of the states
// of its parts, in the order given by each doc.
#pragma once
#include <optional>

#include "shardarray/optim/moments.h"
#include "shardarray/optim/scaling.h"
#include "shardarray/optim/wrappers.h"

namespace shardarray::optim {

/// A number or a Schedule.
template <class R>
concept Rate = std::is_arithmetic_v<R> || Schedule<R>;

/// Options of sgd(), with optax's names and defaults.
struct SgdOptions {
  double momentum = 0;  ///< decay of the trace of gradients; 0: no trace
  bool nesterov =
      false;  ///< the update is g + momentum * trace instead of the trace; no effect without momentum
};
/// The state of sgd for parameters T.
template <class T> struct SgdState {
  Array count;  ///< updates so far, int32; absent unless the learning rate is a schedule
  T trace;      ///< absent without momentum
};

namespace detail {

/// A number as double, a schedule unchanged.
template <class R> using rate_of = std::conditional_t<std::is_arithmetic_v<R>, double, R>;
template <Rate R> Leafwise<RateRule<rate_of<R>>> minus_rate_of(R rate) {
  return {{static_cast<rate_of<R>>(std::move(rate)), true}};
}
/// A rule followed by the learning rate.
template <class R> struct ScaledRule {
  R rule;
  Array rate;
  std::size_t kept() const requires requires(const R& r) { r.kept(); }
  { return rule.kept(); }
  void step(LeafStep& s) const {
    rule.step(s);
    scale_leaves(s, rate);
  }
};
struct SgdRule {
  SgdOptions o;
  std::size_t kept() const { return o.momentum != 0 ? 1 : 0; }
  void step(LeafStep& s) const {
    if (o.momentum != 0) TraceRule{o.momentum, o.nesterov}.step(s);
  }
};

}  // namespace detail

/// Adam (D. Kingma, J. Ba, 2015): -rate * m / (sqrt(v + eps_root) + eps), where m and v are the means of g and g^2 divided by 1 - b^t,
/// and t counts the updates including this one.
template <class Rate = double> struct Adam {
  Rate learning_rate;  ///< a number, or a Schedule
  AdamOptions options;
  /// Zero means for every floating array of the tree, placed like it; count 0.
  template <shardarray::detail::JudgedTree T>
  [[nodiscard]] AdamState<T> init(const T& parameters, Where w = Where::here()) const {
    const Site site(w, "adam.init");
    return detail::first_state<AdamState<T>>(detail::AdamRule{options}, parameters, w);
  }
  /// Returns (updates, next state). Throws, with the path, if the gradients do not fit the state: TreeError for other sizes or keys and
  /// for an array in only one of them, ShapeError for another shape. Parameters are not used.
  template <shardarray::detail::JudgedTree T, class P = none_t>
  [[nodiscard]] std::pair<T, AdamState<T>> update(const T& grads, const AdamState<T>& state, const P& = none,
                                                  Where w = Where::here()) const {
    const Site site(w, "adam.update");
    const Array rate = detail::minus_rate_at(learning_rate, state.count);
    return detail::leaf_update(detail::ScaledRule<detail::AdamRule>{{options}, rate}, grads, state, none,
                               "adam.update");
  }
};

/// Stochastic gradient descent: -rate * g, or -rate * trace with trace = g + momentum * trace.
template <class Rate = double> struct Sgd {
  Rate learning_rate;  ///< a number, or a Schedule
  SgdOptions options;
  /// Zero traces for every floating array of the tree if there is momentum; count 0 if the rate is a schedule.
  template <shardarray::detail::JudgedTree T>
  [[nodiscard]] SgdState<T> init(const T& parameters, Where w = Where::here()) const {
    const Site site(w, "sgd.init");
    detail::Slots slots = shardarray::detail::slots(parameters);
    slots = options.momentum != 0 ? detail::zeros_for(std::move(slots)) : detail::Slots(slots.size());
    return {std::is_arithmetic_v<Rate> ? Array() : detail::zero_count(w),
            detail::with_slots(parameters, slots)};
  }
  /// As for adam; without momentum only sizes and keys are compared.
  template <shardarray::detail::JudgedTree T, class P = none_t>
  [[nodiscard]] std::pair<T, SgdState<T>> update(const T& grads, const SgdState<T>& state, const P& = none,
                                                 Where w = Where::here()) const {
    const Site site(w, "sgd.update");
    const Array rate = detail::minus_rate_at(learning_rate, state.count);
    return detail::leaf_update(detail::ScaledRule<detail::SgdRule>{{options}, rate}, grads, state, none,
                               "sgd.update");
  }
};

/// With optax's names: `adam(1e-3)`, `sgd([](const Array& count) { return 0.1 / (1 + count); }, {.momentum = 0.9})`.
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
/// adam() with nesterov: Adam with lookahead by one update, see scale_by_adam().
template <Rate R> [[nodiscard]] Adam<detail::rate_of<R>> nadam(R learning_rate, AdamOptions o = {}) {
  o.nesterov = true;
  return {static_cast<detail::rate_of<R>>(std::move(learning_rate)), o};
}

// ---------------------------------------------------------------- the Adam family: scale_by_..., then the learning rate
/// Options of adamw(): those of adam, and the decay of the parameters, which the learning rate also scales.
struct AdamWOptions {
  double b1 = 0.9, b2 = 0.999, eps = 1e-8, eps_root = 0;  ///< as adam's
  double weight_decay = 1e-4;
  bool nesterov = false;  ///< as adam's
};
namespace detail {
template <shardarray::detail::FixedString name, class Rule, class R, class... Between>
auto scaled_chain(Rule rule, R rate, Between... between) {
  auto last = minus_rate_of(std::move(rate));
  return Chain<name, Leafwise<Rule>, Between..., decltype(last)>{
      {Leafwise<Rule>{std::move(rule)}, std::move(between)..., std::move(last)}};
}
inline AdamRule adam_of(const AdamWOptions& o) { return {{o.b1, o.b2, o.eps, o.eps_root, o.nesterov}}; }
}  // namespace detail
/// Chains scale_by_adam, add_decayed_weights, the learning rate. Uses the parameters. With a mask (see masked()), only the selected
/// leaves decay: `adamw(1e-3, {}, [](const Array& x) { return x.ndim() > 1; })`. Source: I. Loshchilov, F. Hutter, 2019.
template <Rate R> [[nodiscard]] auto adamw(R learning_rate, const AdamWOptions& o = {}) {
  return detail::scaled_chain<"adamw.update">(detail::adam_of(o), std::move(learning_rate),
                                              add_decayed_weights(o.weight_decay));
}
template <Rate R, Mask M> [[nodiscard]] auto adamw(R learning_rate, const AdamWOptions& o, M mask) {
  return detail::scaled_chain<"adamw.update">(detail::adam_of(o), std::move(learning_rate),
                                              masked(add_decayed_weights(o.weight_decay), std::move(mask)));
}
/// adamw() with nesterov.
template <Rate R> [[nodiscard]] auto nadamw(R learning_rate, AdamWOptions o = {}) {
  o.nesterov = true;
  return adamw(std::move(learning_rate), o);
}
template <Rate R, Mask M> [[nodiscard]] auto nadamw(R learning_rate, AdamWOptions o, M mask) {
  o.nesterov = true;
  return adamw(std::move(learning_rate), o, std::move(mask));
}
/// Chain scale_by_amsgrad, _adamax, _radam, _belief and _yogi with the learning rate.
template <Rate R> [[nodiscard]] auto amsgrad(R learning_rate, const AmsgradOptions& o = {}) {
  return detail::scaled_chain<"amsgrad.update">(detail::AmsgradRule{o}, std::move(learning_rate));
}
template <Rate R> [[nodiscard]] auto adamax(R learning_rate, const AdamaxOptions& o = {}) {
  return detail::scaled_chain<"adamax.update">(detail::AdamaxRule{o}, std::move(learning_rate));
}
template <Rate R> [[nodiscard]] auto radam(R learning_rate, const RadamOptions& o = {}) {
  return detail::scaled_chain<"radam.update">(detail::RadamRule{o}, std::move(learning_rate));
}
template <Rate R> [[nodiscard]] auto adabelief(R learning_rate, const AdabeliefOptions& o = {}) {
  return detail::scaled_chain<"adabelief.update">(detail::BeliefRule{o}, std::move(learning_rate));
}
template <Rate R> [[nodiscard]] auto yogi(R learning_rate, const YogiOptions& o = {}) {
  return detail::scaled_chain<"yogi.update">(detail::YogiRule{o}, std::move(learning_rate));
}
/// Options of novograd(): those of scale_by_novograd() with another eps.
struct NovogradOptions {
  double b1 = 0.9, b2 = 0.25, eps = 1e-6, eps_root = 0, weight_decay = 0;
};
/// Chains scale_by_novograd, the learning rate. Uses the parameters.
template <Rate R> [[nodiscard]] auto novograd(R learning_rate, const NovogradOptions& o = {}) {
  return detail::scaled_chain<"novograd.update">(
      detail::NovogradRule{{o.b1, o.b2, o.eps, o.eps_root, o.weight_decay}}, std::move(learning_rate));
}
/// Options of lamb().
struct LambOptions {
  double b1 = 0.9, b2 = 0.999, eps = 1e-6, eps_root = 0;  ///< as adam's
  double weight_decay = 0;                                ///< as adamw's
};
/// Chains scale_by_adam, add_decayed_weights, scale_by_trust_ratio, the learning rate. Uses the parameters. Source: Y. You and others,
/// 2020.
template <Rate R> [[nodiscard]] auto lamb(R learning_rate, const LambOptions& o = {}) {
  return detail::scaled_chain<"lamb.update">(detail::AdamRule{{o.b1, o.b2, o.eps, o.eps_root}},
                                             std::move(learning_rate), add_decayed_weights(o.weight_decay),
                                             scale_by_trust_ratio());
}
template <Rate R, Mask M> [[nodiscard]] auto lamb(R learning_rate, const LambOptions& o, M mask) {
  return detail::scaled_chain<"lamb.update">(
      detail::AdamRule{{o.b1, o.b2, o.eps, o.eps_root}}, std::move(learning_rate),
      masked(add_decayed_weights(o.weight_decay), std::move(mask)), scale_by_trust_ratio());
}
/// Options of lion().
struct LionOptions {
  double b1 = 0.9, b2 = 0.99;  ///< as scale_by_lion's
  double weight_decay = 1e-3;  ///< as adamw's
};
/// Chains scale_by_lion, add_decayed_weights, the learning rate, which should be a tenth of adamw's. Uses the parameters.
template <Rate R> [[nodiscard]] auto lion(R learning_rate, const LionOptions& o = {}) {
  return detail::scaled_chain<"lion.update">(detail::LionRule{o.b1, o.b2}, std::move(learning_rate),
                                             add_decayed_weights(o.weight_decay));
}
template <Rate R, Mask M> [[nodiscard]] auto lion(R learning_rate, const LionOptions& o, M mask) {
  return detail::scaled_chain<"lion.update">(detail::LionRule{o.b1, o.b2}, std::move(learning_rate),
                                             masked(add_decayed_weights(o.weight_decay), std::move(mask)));
}

// ---------------------------------------------------------------- others
/// Options of rmsprop().
struct RmspropOptions {
  double decay = 0.9, eps = 1e-8, initial_scale = 0;  ///< as scale_by_rms's
  bool eps_in_sqrt = true;                            ///< as scale_by_rms's
  bool centered = false;                              ///< scale_by_stddev instead of scale_by_rms
  std::optional<double> momentum = std::nullopt;      ///< decay of a trace of the scaled updates
  bool nesterov = false;                              ///< of that trace
  bool bias_correction = false;                       ///< as scale_by_rms's
};
/// Chains scale_by_rms, scale_by_stddev (one of them absent), the learning rate, trace (absent without momentum).
template <Rate R> [[nodiscard]] auto rmsprop(R learning_rate, const RmspropOptions& o = {}) {
  const RmsOptions rms{o.decay, o.eps, o.initial_scale, o.eps_in_sqrt, o.bias_correction};
  auto rate = detail::minus_rate_of(std::move(learning_rate));
  return detail::chain_as<"rmsprop.update">(
      detail::when(!o.centered, scale_by_rms(rms)), detail::when(o.centered, scale_by_stddev(rms)),
      std::move(rate), detail::when(o.momentum.has_value(), trace(o.momentum.value_or(0), o.nesterov)));
}
/// Options of adagrad(): those of scale_by_rss().
using AdagradOptions = RssOptions;
/// Chains scale_by_rss, the learning rate.
template <Rate R> [[nodiscard]] auto adagrad(R learning_rate, const AdagradOptions& o = {}) {
  return detail::scaled_chain<"adagrad.update">(detail::RssRule{o}, std::move(learning_rate));
}
/// Options of adadelta().
struct AdadeltaOptions {
  double rho = 0.9, eps = 1e-6;  ///< as scale_by_adadelta's
  double weight_decay = 0;       ///< of the parameters, added to the gradients
};
/// Chains add_decayed_weights, scale_by_adadelta, the learning rate. Uses the parameters.
template <Rate R> [[nodiscard]] auto adadelta(R learning_rate, const AdadeltaOptions& o = {}) {
  return detail::chain_as<"adadelta.update">(add_decayed_weights(o.weight_decay),
                                             scale_by_adadelta(o.rho, o.eps),
                                             detail::minus_rate_of(std::move(learning_rate)));
}
/// Chains scale_by_sign, the learning rate.
template <Rate R> [[nodiscard]] auto sign_sgd(R learning_rate) {
  return detail::chain_as<"sign_sgd.update">(scale_by_sign(),
                                             detail::minus_rate_of(std::move(learning_rate)));
}
/// Options of lars().
struct LarsOptions {
  double weight_decay = 0;                   ///< of the parameters, added to the gradients
  double trust_coefficient = 1e-3, eps = 0;  ///< as scale_by_trust_ratio's
  double momentum = 0.9;                     ///< decay of the trace of the scaled updates
  bool nesterov = false;                     ///< of that trace
};
/// Chains add_decayed_weights, scale_by_trust_ratio, the learning rate, trace. Uses the parameters. With masks (see masked()), the first
/// selects which leaves decay, the second which are scaled by norms. Source: Y. You, I. Gitman, B. Ginsburg, 2017.
template <Rate R> [[nodiscard]] auto lars(R learning_rate, const LarsOptions& o = {}) {
  return detail::chain_as<"lars.update">(
      add_decayed_weights(o.weight_decay),
      scale_by_trust_ratio({.trust_coefficient = o.trust_coefficient, .eps = o.eps}),
      detail::minus_rate_of(std::move(learning_rate)), trace(o.momentum, o.nesterov));
}
template <Rate R, Mask M, Mask N>
[[nodiscard]] auto lars(R learning_rate, const LarsOptions& o, M weight_decay_mask, N trust_ratio_mask) {
  return detail::chain_as<"lars.update">(
      masked(add_decayed_weights(o.weight_decay), std::move(weight_decay_mask)),
      masked(scale_by_trust_ratio({.trust_coefficient = o.trust_coefficient, .eps = o.eps}),
             std::move(trust_ratio_mask)),
      detail::minus_rate_of(std::move(learning_rate)), trace(o.momentum, o.nesterov));
}
/// Options of adafactor().
struct AdafactorOptions {
  std::int64_t min_dim_size_to_factor = 128;               ///< as scale_by_factored_rms's
  double decay_rate = 0.8;                                 ///< as scale_by_factored_rms's
  std::int64_t decay_offset = 0;                           ///< step_offset of scale_by_factored_rms
  bool multiply_by_parameter_scale = true;                 ///< scale_by_param_block_rms
  std::optional<double> clipping_threshold = 1;            ///< of clip_by_block_rms
  std::optional<double> momentum = std::nullopt;           ///< decay of an ema without debiasing
  std::optional<double> weight_decay_rate = std::nullopt;  ///< of the parameters, added last
  double eps = 1e-30;                                      ///< added to g^2
  bool factored = true;                                    ///< as scale_by_factored_rms's
};
namespace detail {
template <class... Middle> auto adafactor_of(const AdafactorOptions& o, Middle... rate) {
  return chain_as<"adafactor.update">(
      scale_by_factored_rms({o.factored, o.decay_rate, o.decay_offset, o.min_dim_size_to_factor, o.eps}),
      when(o.clipping_threshold.has_value(), clip_by_block_rms(o.clipping_threshold.value_or(0))),
      std::move(rate)..., when(o.multiply_by_parameter_scale, scale_by_param_block_rms()),
      when(o.momentum.has_value(), optim::ema(o.momentum.value_or(0), false)),
      add_decayed_weights(o.weight_decay_rate.value_or(0)), scale(-1));
}
}  // namespace detail
/// Chains scale_by_factored_rms, clip_by_block_rms, the learning rate if given, scale_by_param_block_rms, ema, add_decayed_weights (not
/// scaled by the rate), scale(-1); parts that are not requested are absent. Uses the parameters. Source: N. Shazeer, M. Stern, 2018.
[[nodiscard]] inline auto adafactor(const AdafactorOptions& o = {}) { return detail::adafactor_of(o); }
template <Rate R> [[nodiscard]] auto adafactor(R learning_rate, const AdafactorOptions& o = {}) {
  return detail::adafactor_of(o, Leafwise<detail::RateRule<detail::rate_of<R>>>{
                                     {static_cast<detail::rate_of<R>>(std::move(learning_rate)), false}});
}

}  // namespace shardarray::optim
