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

}  // namespace shardarray::losses
