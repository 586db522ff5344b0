// Helpers for the rules of optimizers. Numbers of the options are rounded once, to the dtype of what they are combined with: a literal
// would be rounded to float32 first, and a mean in float32 must not decay by 0.999 rounded to bfloat16.
#pragma once
#include "ops/record.h"
#include "shardarray/complex.h"
#include "shardarray/ops.h"
#include "shardarray/optim/transform.h"

namespace shardarray::optim::detail {

/// The dtype of factors of x: float32 for integers.
inline DType number_type(const Array& x) { return is_inexact(x.dtype()) ? x.dtype() : float32; }
/// `v` in that dtype.
inline Array number(const Array& x, double v) {
  return primitive::constant(number_type(x), primitive::bits_of(number_type(x), v), true);
}
inline Array scalar_of(DType t, double v) { return primitive::constant(t, primitive::bits_of(t, v), false); }
inline Array single(double v) { return scalar_of(DType::float32, v); }
/// The dtype of what is computed from the count: float32, as in optax, unless a gradient is wider.
inline DType count_type(const LeafStep& s) {
  for (const Array& g : s.updates)
    if (g.has_value() && g.dtype() == DType::float64) return DType::float64;
  return DType::float32;
}
/// x * rate in the dtype of x.
inline Array scaled(const Array& x, const Array& rate) {
  return x * primitive::cast(rate, number_type(x), true);
}
/// |x|^2, which is real.
inline Array squared(const Array& x) {
  return is_complex(x.dtype()) ? square(real(x)) + square(imag(x)) : square(x);
}
/// An exponential moving average.
inline Array moment(const Array& x, const Array& mean, double decay) {
  return number(x, 1 - decay) * x + number(mean, decay) * mean;
}
/// 1 - b^t.
inline Array correction(double b, const Array& t, DType type) {
  const Array power_of_b = power(scalar_of(type, b), t.astype(type));
  return primitive::sub(primitive::like(power_of_b, 1), power_of_b);
}
inline Array corrected(const Array& mean, const Array& by) { return mean / by.astype(mean.dtype()); }
/// f(update, index) for every update that is present.
template <class F> void for_leaves(LeafStep& s, const F& f) {
  for (std::size_t k = 0; k < s.updates.size(); k++)
    if (s.updates[k].has_value()) f(s.updates[k], k);
}

}  // namespace shardarray::optim::detail
