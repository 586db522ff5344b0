// Losses, as in optax: floating, in the promoted dtype of the operands. Shapes are broadcast; ShapeError if they cannot be.
#pragma once
#include "shardarray/array.h"

namespace shardarray::losses {

/// The mean of (prediction - target)^2 over all elements: a scalar; NaN for none. Throws DTypeError for two bools.
[[nodiscard]] SHARDARRAY_API Array mse(const Array& prediction, const Array& target, Where w = Where::here());
/// -sum(labels * log_softmax(logits)) over the last axis: [.., n] and probabilities [.., n] -> [..]. Throws ShapeError for scalar
/// logits.
[[nodiscard]] SHARDARRAY_API Array softmax_cross_entropy(const Array& logits, const Array& labels,
                                                         Where w = Where::here());
/// The same for integer class labels: [.., n] and integers [..] -> [..]. NaN for a label that is not in 0..n-1. Throws DTypeError unless
/// logits are floating and labels integers, ShapeError for labels of another shape: nothing is broadcast.
[[nodiscard]] SHARDARRAY_API Array softmax_cross_entropy_with_integer_labels(const Array& logits,
                                                                             const Array& labels,
                                                                             Where w = Where::here());

// ---------------------------------------------------------------- regression
/// Elementwise (prediction - target)^2, and half of it. Throws DTypeError for two bools.
[[nodiscard]] SHARDARRAY_API Array squared_error(const Array& predictions, const Array& targets,
                                                 Where w = Where::here());
[[nodiscard]] SHARDARRAY_API Array l2_loss(const Array& predictions, const Array& targets,
                                           Where w = Where::here());
/// Elementwise l2_loss for |prediction - target| <= delta, linear with slope delta beyond. Throws DTypeError for two bools. Source: P.
/// Huber, 1964.
[[nodiscard]] SHARDARRAY_API Array huber_loss(const Array& predictions, const Array& targets,
                                              double delta = 1, Where w = Where::here());
/// Elementwise log(cosh(prediction - target)), without overflow. Throws DTypeError for two bools.
[[nodiscard]] SHARDARRAY_API Array log_cosh(const Array& predictions, const Array& targets,
                                            Where w = Where::here());
/// Options of cosine_similarity() and cosine_distance().
struct CosineOptions {
  double epsilon = 0;      ///< norms are sqrt(max(sum of squares, epsilon)); 0: NaN for a vector of zeros
  std::int64_t axis = -1;  ///< the axis of the vectors
};
/// The cosine of the angle between vectors, and 1 minus that: [.., n] and [.., n] -> [..]. Throws ShapeError for an axis that does not
/// exist.
[[nodiscard]] SHARDARRAY_API Array cosine_similarity(const Array& predictions, const Array& targets,
                                                     const CosineOptions& o = {}, Where w = Where::here());
[[nodiscard]] SHARDARRAY_API Array cosine_distance(const Array& predictions, const Array& targets,
                                                   const CosineOptions& o = {}, Where w = Where::here());

// ---------------------------------------------------------------- classification
/// Elementwise -labels * log(sigmoid(logits)) - (1 - labels) * log(sigmoid(-logits)), without overflow; labels are probabilities, cast to
/// the dtype of the logits. Throws DTypeError unless logits are floating.
[[nodiscard]] SHARDARRAY_API Array sigmoid_binary_cross_entropy(const Array& logits, const Array& labels,
                                                                Where w = Where::here());
/// Elementwise max(0, 1 - output * target); targets are -1 and 1.
[[nodiscard]] SHARDARRAY_API Array hinge_loss(const Array& predictor_outputs, const Array& targets,
                                              Where w = Where::here());
/// sum(targets * (log(targets) - log_predictions)) over the last axis, [.., n] -> [..]; a target of 0 contributes 0, or NaN with a log
/// prediction of -inf, as in optax. Throws ShapeError for scalars.
[[nodiscard]] SHARDARRAY_API Array kl_divergence(const Array& log_predictions, const Array& targets,
                                                 Where w = Where::here());
/// The same with logarithms of targets.
[[nodiscard]] SHARDARRAY_API Array kl_divergence_with_log_targets(const Array& log_predictions,
                                                                  const Array& log_targets,
                                                                  Where w = Where::here());
/// (1 - alpha) * labels + alpha / n for n classes along the last axis. Throws ShapeError for a scalar.
[[nodiscard]] SHARDARRAY_API Array smooth_labels(const Array& labels, double alpha, Where w = Where::here());

}  // namespace shardarray::losses
