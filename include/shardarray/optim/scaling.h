// Building blocks of optimizers: traces and averages of gradients, weight decay, clipping, norms. Names, defaults and arithmetic are
// optax's; all follow the rules of transform.h.
#pragma once
#include "shardarray/optim/transform.h"

namespace shardarray::optim {

/// The state of trace().
template <class T> struct TraceState {
  T trace;  ///< decayed sums of gradients
};
/// The state of ema().
template <class T> struct EmaState {
  Array count;  ///< updates so far, int32
  T ema;        ///< means
};
/// The state of apply_every().
template <class T> struct ApplyEveryState {
  Array count;  ///< gradients since the last update, int32
  T grad_acc;   ///< their sum
};

namespace detail {

struct TraceRule {
  static constexpr const char* name = "trace.update";
  template <class T> using State = TraceState<T>;
  double decay;
  bool nesterov = false;
  SHARDARRAY_API void step(LeafStep& s) const;
};
struct EmaRule {
  static constexpr const char* name = "ema.update";
  template <class T> using State = EmaState<T>;
  double decay;
  bool debias = true;
  SHARDARRAY_API void step(LeafStep& s) const;
};
struct ApplyEveryRule {
  static constexpr const char* name = "apply_every.update";
  template <class T> using State = ApplyEveryState<T>;
  std::int64_t k;
  SHARDARRAY_API void step(LeafStep& s) const;
};

/// Adds rate * parameter.
SHARDARRAY_API void decay_leaves(LeafStep& s, double rate);
SHARDARRAY_API void decay_leaves(LeafStep& s, const Array& rate);
template <class Rate> struct DecayRule {
  static constexpr const char* name = "add_decayed_weights.update";
  static constexpr bool uses_params = true;
  template <class>
  using State = std::conditional_t<std::is_arithmetic_v<Rate>, EmptyState, ScaleByScheduleState>;
  Rate weight_decay;
  void step(LeafStep& s) const {
    if constexpr (std::is_arithmetic_v<Rate>) decay_leaves(s, static_cast<double>(weight_decay));
    else decay_leaves(s, Array(by_user(weight_decay, s.count)));
  }
};

/// Stateless rules with one number.
enum class Stateless : std::uint8_t { clip, global_norm, block_rms, param_norm, param_rms, sign, centralize };
SHARDARRAY_API void stateless_step(Stateless kind, double number, LeafStep& s);
template <Stateless kind, shardarray::detail::FixedString text> struct StatelessRule {
  static constexpr const char* name = text.text;
  template <class> using State = EmptyState;
  double number = 0;
  void step(LeafStep& s) const { stateless_step(kind, number, s); }
};
template <Stateless kind, shardarray::detail::FixedString text> struct ParamRule {
  static constexpr const char* name = text.text;
  static constexpr bool uses_params = true;
  template <class> using State = EmptyState;
  double number = 0;
  void step(LeafStep& s) const { stateless_step(kind, number, s); }
};
using ClipRule = StatelessRule<Stateless::clip, "clip.update">;
using GlobalNormRule = StatelessRule<Stateless::global_norm, "clip_by_global_norm.update">;
using BlockRmsRule = StatelessRule<Stateless::block_rms, "clip_by_block_rms.update">;
using SignRule = StatelessRule<Stateless::sign, "scale_by_sign.update">;
using CentralizeRule = StatelessRule<Stateless::centralize, "centralize.update">;
using ParamNormRule = ParamRule<Stateless::param_norm, "scale_by_param_block_norm.update">;
using ParamRmsRule = ParamRule<Stateless::param_rms, "scale_by_param_block_rms.update">;

[[nodiscard]] SHARDARRAY_API Array norm_of(const Slots& leaves);
/// Throws ShapeError, naming `function`, for a number of steps below 1.
SHARDARRAY_API void check_steps(std::int64_t steps, const char* function);

}  // namespace detail

/// Options of scale_by_trust_ratio().
struct TrustRatioOptions {
  double min_norm = 0;           ///< lower bound of both norms
  double trust_coefficient = 1;  ///< factor of the ratio
  double eps = 0;                ///< added to the norm of the update
};
namespace detail {
struct TrustRule {
  static constexpr const char* name = "scale_by_trust_ratio.update";
  static constexpr bool uses_params = true;
  template <class> using State = EmptyState;
  TrustRatioOptions options;
  SHARDARRAY_API void step(LeafStep& s) const;
};
}  // namespace detail

/// trace = g + decay * trace; the update is the trace or, with nesterov, g + decay * trace.
[[nodiscard]] inline Leafwise<detail::TraceRule> trace(double decay, bool nesterov = false) {
  return {{decay, nesterov}};
}
/// ema = (1 - decay) * g + decay * ema; the update is that mean, with debias divided by 1 - decay^t for the t-th update.
[[nodiscard]] inline Leafwise<detail::EmaRule> ema(double decay, bool debias = true) {
  return {{decay, debias}};
}
/// Returns zeros k - 1 times, then the sum of the last k gradients. Goes after the optimizer: `chain(adam(1e-3), apply_every(4))`; to
/// accumulate before it, use multi_steps(). Throws ShapeError for k < 1.
[[nodiscard]] inline Leafwise<detail::ApplyEveryRule> apply_every(std::int64_t k = 1,
                                                                  Where w = Where::here()) {
  const Site site(w);
  detail::check_steps(k, "apply_every");
  return {{k}};
}

/// g + weight_decay * parameter; weight_decay is a number (0: no effect) or a schedule. Uses the parameters. To select them: masked().
[[nodiscard]] inline Leafwise<detail::DecayRule<double>> add_decayed_weights(double weight_decay = 0) {
  return {{weight_decay}};
}
template <Schedule F> [[nodiscard]] Leafwise<detail::DecayRule<F>> add_decayed_weights(F weight_decay) {
  return {{std::move(weight_decay)}};
}

/// The norm of a tree as a single vector: sqrt(sum of all squares), in the promoted dtype of its arrays; 0 if there are none.
template <Tree T> [[nodiscard]] Array global_norm(const T& tree, Where w = Where::here()) {
  const Site site(w, "global_norm");
  return detail::norm_of(shardarray::detail::slots(tree));
}
/// Clips every element to [-max_delta, max_delta].
[[nodiscard]] inline Leafwise<detail::ClipRule> clip(double max_delta) { return {{max_delta}}; }
/// Divides all updates by one number, so that their global_norm() is at most max_norm.
[[nodiscard]] inline Leafwise<detail::GlobalNormRule> clip_by_global_norm(double max_norm) {
  return {{max_norm}};
}
/// Divides each array by its own number, so that its root mean square is at most `threshold`.
[[nodiscard]] inline Leafwise<detail::BlockRmsRule> clip_by_block_rms(double threshold) {
  return {{threshold}};
}
/// The sign of every element.
[[nodiscard]] inline Leafwise<detail::SignRule> scale_by_sign() { return {}; }
/// Subtracts from arrays of two or more dimensions their mean over all dimensions but the first.
[[nodiscard]] inline Leafwise<detail::CentralizeRule> centralize() { return {}; }
/// Multiplies each array by the norm (or root mean square) of its parameter, at least min_scale. Uses the parameters.
[[nodiscard]] inline Leafwise<detail::ParamNormRule> scale_by_param_block_norm(double min_scale = 1e-3) {
  return {{min_scale}};
}
[[nodiscard]] inline Leafwise<detail::ParamRmsRule> scale_by_param_block_rms(double min_scale = 1e-3) {
  return {{min_scale}};
}
/// Multiplies each array by trust_coefficient * |parameter| / (|update| + eps), or by 1 if one of the norms is 0. Uses the parameters.
/// Source: Y. You, I. Gitman, B. Ginsburg, 2017.
[[nodiscard]] inline Leafwise<detail::TrustRule> scale_by_trust_ratio(const TrustRatioOptions& o = {}) {
  return {{o}};
}

}  // namespace shardarray::optim
