#include "shardarray/losses.h"

#include <fmt/core.h>

#include <limits>

#include "ops/record.h"
#include "shardarray/ops.h"

namespace shardarray::losses {

Array mse(const Array& prediction, const Array& target, Where w) {
  const Site site(w, "mse");
  return mean(square(prediction - target));
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
  const Array classes = primitive::iota(t.shape, t.shape.size() - 1, of_labels.dtype);
  const Array chosen = equal(classes, expand_dims(labels, -1));
  const Array log_likelihood = sum(where(chosen, log_softmax(logits), 0.0), -1);
  return where(any(chosen, -1), -log_likelihood, std::numeric_limits<double>::quiet_NaN());
}

}  // namespace shardarray::losses
