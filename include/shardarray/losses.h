// Losses, as in optax.
#pragma once
#include "shardarray/array.h"

namespace shardarray::losses {

/// The mean of (prediction - target)^2 over all elements: a scalar.
SHARDARRAY_API Array mse(const Array& prediction, const Array& target, Where w = Where::here());
/// -sum(labels * log_softmax(logits)) over the last axis: [.., n] and probabilities [.., n] -> [..].
SHARDARRAY_API Array softmax_cross_entropy(const Array& logits, const Array& labels, Where w = Where::here());
/// The same for one class per example: [.., n] and integers [..] -> [..]. NaN where a label is not in 0..n-1.
SHARDARRAY_API Array softmax_cross_entropy_with_integer_labels(const Array& logits, const Array& labels,
                                                               Where w = Where::here());

}  // namespace shardarray::losses
