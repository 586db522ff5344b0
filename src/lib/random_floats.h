// Floating numbers from random bits, rounded as in jax.random.
#pragma once
#include "ops/record.h"

namespace shardarray::random {

/// Throws DTypeError for a dtype that is not floating.
void need_floating(DType t, const char* function);

/// For the floating dtype t: the dtype of the bits that one number takes, and the smallest normal number.
DType drawn_bits(DType t);
Array smallest_normal(DType t);

Array scalar(DType t, double v);
/// k * 2^-mantissa with the highest bits of `drawn` as k: exact, in [0, 1).
Array unit_of_bits(const Array& drawn, DType t);
/// A number in [lo, hi) from one in [0, 1); lo and hi are scalars of its dtype.
Array between(const Array& unit, const Array& lo, const Array& hi);
/// A standard normal number from one in [0, 1).
Array normal_of_unit(const Array& unit);

/// Draws of a shape.
Array unit_uniform(const Array& key, const Shape& shape, DType t);
Array uniform_between(const Array& key, const Shape& shape, DType t, double lo, double hi);

}  // namespace shardarray::random
