#include "shardarray/losses.h"

#include <fmt/core.h>

#include <limits>
#include <numbers>

#include "ops/api.h"
#include "ops/record.h"
#include "shardarray/activations.h"
#include "shardarray/ops.h"

namespace shardarray::losses {

// Integers become floats, as their differences would wrap. Bools are refused.
static std::pair<Array, Array> numbers(const char* function, const Array& a, const Array& b) {
  const WeakType t = api::promoted(function, {&a, &b});
  if (t.dtype == DType::bool_) api::refuse_dtype(function, a, "It takes numbers");
  const auto x = api::together(function, {&a, &b}, api::to_inexact(t));
  return {x[0], x[1]};
}
static Array difference(const char* function, const Array& a, const Array& b) {
  const auto [x, y] = numbers(function, a, b);
  return x - y;
}

Array mse(const Array& prediction, const Array& target, Where w) {
  const Site site(w, "mse");
  return mean(square(difference("mse", prediction, target)));
}

Array softmax_cross_entropy(const Array& logits, const Array& labels, Where w) {
  const Site site(w, "softmax_cross_entropy");
  return -sum(labels * log_softmax(logits), -1);
}

Array softmax_cross_entropy_with_integer_labels(const Array& logits, const Array& labels, Where w) {
  constexpr const char* function = "softmax_cross_entropy_with_integer_labels";
  const Site site(w, function);
  const Type &t = type_of(logits, function), &of_labels = type_of(labels, function);
  if (!is_floating(t.dtype) || !is_integer(of_labels.dtype))
    throw DTypeError(
        fmt::format("{}: logits {}, labels {}. Logits are floating, labels integers. For probabilities use "
                    "softmax_cross_entropy.",
                    function, to_string(t), to_string(of_labels)));
  Shape expected = t.shape;
  if (!expected.empty()) expected.pop_back();
  if (t.shape.empty() || of_labels.shape != expected)
    throw ShapeError(
        fmt::format("{}: logits {}, labels {}. Labels have the shape of the logits without the last "
                    "dimension. Correct them.",
                    function, to_string(t), to_string(of_labels)));
  // A comparison instead of a gather: it fuses, and shards in every dimension.
  const Array chosen = one_hot(labels, t.shape.back(), DType::bool_);
  const Array log_likelihood = sum(where(chosen, log_softmax(logits), 0.0), -1);
  return where(any(chosen, -1), -log_likelihood, std::numeric_limits<double>::quiet_NaN());
}

// ---------------------------------------------------------------- regression
Array squared_error(const Array& predictions, const Array& targets, Where w) {
  const Site site(w, "squared_error");
  return square(difference("squared_error", predictions, targets));
}
Array l2_loss(const Array& predictions, const Array& targets, Where w) {
  const Site site(w, "l2_loss");
  return 0.5 * square(difference("l2_loss", predictions, targets));
}

Array huber_loss(const Array& predictions, const Array& targets, double delta, Where w) {
  const Site site(w, "huber_loss");
  const Array distance = abs(difference("huber_loss", predictions, targets)), near = minimum(distance, delta);
  return 0.5 * square(near) + delta * (distance - near);
}

Array log_cosh(const Array& predictions, const Array& targets, Where w) {
  const Site site(w, "log_cosh");
  const Array distance = abs(difference("log_cosh", predictions, targets));
  return distance + log1p(exp(-2.0 * distance)) - std::numbers::ln2;
}

Array cosine_similarity(const Array& predictions, const Array& targets, const CosineOptions& o, Where w) {
  const Site site(w, "cosine_similarity");
  auto unit = [&](const Array& x) {
    return x / sqrt(maximum(sum(square(x), {.axis = o.axis, .keepdims = true}), o.epsilon));
  };
  const auto [x, y] = numbers("cosine_similarity", predictions, targets);
  return sum(unit(x) * unit(y), o.axis);
}
Array cosine_distance(const Array& predictions, const Array& targets, const CosineOptions& o, Where w) {
  const Site site(w, "cosine_distance");
  return 1.0 - cosine_similarity(predictions, targets, o);
}

// ---------------------------------------------------------------- classification
Array sigmoid_binary_cross_entropy(const Array& logits, const Array& labels, Where w) {
  constexpr const char* function = "sigmoid_binary_cross_entropy";
  const Site site(w, function);
  const Type& t = type_of(logits, function);
  if (!is_floating(t.dtype))
    throw DTypeError(fmt::format("{}: logits {}. Logits are floating. Convert them with astype().", function,
                                 to_string(t)));
  const Array p = labels.astype(t.dtype);
  return -p * log_sigmoid(logits) - (1.0 - p) * log_sigmoid(-logits);
}

Array hinge_loss(const Array& predictor_outputs, const Array& targets, Where w) {
  const Site site(w, "hinge_loss");
  const auto [x, y] = numbers("hinge_loss", predictor_outputs, targets);
  return maximum(0, 1 - x * y);
}

Array kl_divergence(const Array& log_predictions, const Array& targets, Where w) {
  const Site site(w, "kl_divergence");
  // log(1) in place of log(0), whose derivative would be NaN.
  const Array log_targets = log(where(targets == 0, 1.0, targets));
  return sum(targets * (log_targets - log_predictions), -1);
}
Array kl_divergence_with_log_targets(const Array& log_predictions, const Array& log_targets, Where w) {
  const Site site(w, "kl_divergence_with_log_targets");
  return sum(exp(log_targets) * (log_targets - log_predictions), -1);
}

Array smooth_labels(const Array& labels, double alpha, Where w) {
  constexpr const char* function = "smooth_labels";
  const Site site(w, function);
  const Type& t = type_of(labels, function);
  if (t.shape.empty())
    throw ShapeError(
        fmt::format("{}: labels {}. Classes are the last dimension. Give it.", function, to_string(t)));
  return (1.0 - alpha) * labels + alpha / static_cast<double>(t.shape.back());
}

}  // namespace shardarray::losses
