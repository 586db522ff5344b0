// Losses, as in optax: of the promoted dtype of the operands, floating. Shapes are broadcast; ShapeError where they cannot be.
#pragma once
#include "shardarray/array.h"

namespace shardarray::losses {

/// The mean of (prediction - target)^2 over all elements: a scalar; NaN of none. Throws DTypeError for two bools.
[[nodiscard]] SHARDARRAY_API Array mse(const Array& prediction, const Array& target, Where w = Where::here());
/// -sum(labels * log_softmax(logits)) over the last axis: [.., n] and probabilities [.., n] -> [..]. Throws ShapeError for scalar
/// logits.
[[nodiscard]] SHARDARRAY_API Array softmax_cross_entropy(const Array& logits, const Array& labels,
                                                         Where w = Where::here());
/// The same for one class per example: [.., n] and integers [..] -> [..]. NaN where a label is not in 0..n-1.
/// Throws DTypeError unless logits are floating and labels integers, ShapeError for labels of another shape: nothing is broadcast.
[[nodiscard]] SHARDARRAY_API Array softmax_cross_entropy_with_integer_labels(const Array& logits,
                                                                             const Array& labels,
                                                                             Where w = Where::here());

// ---------------------------------------------------------------- regression
/// (prediction - target)^2 of each element, and half of it. Throws DTypeError for two bools.
[[nodiscard]] SHARDARRAY_API Array squared_error(const Array& predictions, const Array& targets,
                                                 Where w = Where::here());
[[nodiscard]] SHARDARRAY_API Array l2_loss(const Array& predictions, const Array& targets,
                                           Where w = Where::here());
/// Of each element: l2_loss where |prediction - target| <= delta, beyond that a straight line of slope delta. Throws DTypeError for two
/// bools. Source: P. Huber, 1964.
[[nodiscard]] SHARDARRAY_API Array huber_loss(const Array& predictions, const Array& targets,
                                              double delta = 1, Where w = Where::here());
/// log(cosh(prediction - target)) of each element, without overflow. Throws DTypeError for two bools.
[[nodiscard]] SHARDARRAY_API Array log_cosh(const Array& predictions, const Array& targets,
                                            Where w = Where::here());
/// Options of cosine_similarity() and cosine_distance().
struct CosineOptions {
  double epsilon = 0;      ///< norms are sqrt(max(sum of squares, epsilon)); 0: NaN for a vector of zeros
  std::int64_t axis = -1;  ///< along which vectors lie
};
/// The cosine of the angle between vectors, and 1 - that: [.., n] and [.., n] -> [..]. Throws ShapeError for an axis that there is
/// not.
[[nodiscard]] SHARDARRAY_API Array cosine_similarity(const Array& predictions, const Array& targets,
                                                     const CosineOptions& o = {}, Where w = Where::here());
[[nodiscard]] SHARDARRAY_API Array cosine_distance(const Array& predictions, const Array& targets,
                                                   const CosineOptions& o = {}, Where w = Where::here());

// ---------------------------------------------------------------- classification
/// -labels * log(sigmoid(logits)) - (1 - labels) * log(sigmoid(-logits)) of each element, without overflow; labels are
/// probabilities, and become of the dtype of the logits. Throws DTypeError unless logits are floating.
[[nodiscard]] SHARDARRAY_API Array sigmoid_binary_cross_entropy(const Array& logits, const Array& labels,
                                                                Where w = Where::here());
/// max(0, 1 - output * target) of each element, targets are -1 and 1.
[[nodiscard]] SHARDARRAY_API Array hinge_loss(const Array& predictor_outputs, const Array& targets,
                                              Where w = Where::here());
/// sum(targets * (log(targets) - log_predictions)) over the last axis, [.., n] -> [..]; a target of 0 adds 0, beside a log prediction
/// of -inf NaN, as in optax. Throws ShapeError for scalars.
[[nodiscard]] SHARDARRAY_API Array kl_divergence(const Array& log_predictions, const Array& targets,
                                                 Where w = Where::here());
/// The same of logarithms of targets.
[[nodiscard]] SHARDARRAY_API Array kl_divergence_with_log_targets(const Array& log_predictions,
                                                                  const Array& log_targets,
                                                                  Where w = Where::here());
/// (1 - alpha) * labels + alpha / n, n classes along the last axis. Throws ShapeError for a scalar.
[[nodiscard]] SHARDARRAY_API Array smooth_labels(const Array& labels, double alpha, Where w = Where::here());

}  // namespace shardarray::losses
