// What the rules of optimizers are written with. Numbers of the options are rounded to the dtype of the leaf once: a literal would
// be rounded to float32 first.
#pragma once
#include "ops/record.h"
#include "shardarray/ops.h"
#include "shardarray/optim/transform.h"

namespace shardarray::optim::detail {

/// The dtype of what scales x: whole numbers give float32.
inline DType number_type(const Array& x) { return is_inexact(x.dtype()) ? x.dtype() : float32; }
/// `v` in that dtype.
inline Array number(const Array& x, double v) {
  return primitive::constant(number_type(x), primitive::bits_of(number_type(x), v), true);
}
/// A float32 scalar, for what is computed of the count.
inline Array single(double v) {
  return primitive::constant(DType::float32, primitive::bits_of(DType::float32, v), false);
}
/// x * rate in the dtype of x.
inline Array scaled(const Array& x, const Array& rate) {
  return x * primitive::cast(rate, number_type(x), true);
}
/// A mean of what comes, old values decay.
inline Array moment(const Array& x, const Array& mean, double decay) {
  return number(x, 1 - decay) * x + number(x, decay) * mean;
}
/// 1 - b^t in float32, as optax computes it.
inline Array correction(double b, const Array& t) {
  const Array power_of_b = power(single(b), t.astype(float32));
  return primitive::sub(primitive::like(power_of_b, 1), power_of_b);
}
inline Array corrected(const Array& mean, const Array& by) { return mean / by.astype(mean.dtype()); }
/// f(update, place) for every gradient.
template <class F> void for_leaves(LeafStep& s, const F& f) {
  for (std::size_t k = 0; k < s.updates.size(); k++)
    if (s.updates[k].has_value()) f(s.updates[k], k);
}

}  // namespace shardarray::optim::detail
