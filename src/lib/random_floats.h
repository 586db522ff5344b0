// Floating numbers made of random bits, with jax.random's roundings.
#pragma once
#include "ops/record.h"

namespace shardarray::random {

/// Throws DTypeError for a dtype that is not floating.
void need_floating(DType t, const char* function);

/// Of the floating dtype t: the bits that are drawn for one number, and the smallest normal number, as its bits.
DType drawn_bits(DType t);
Array smallest_normal(DType t);

Array scalar(DType t, double v);
/// k * 2^-mantissa with the highest bits of `drawn` as k: exact, in [0, 1).
Array unit_of_bits(const Array& drawn, DType t);
/// In [lo, hi), from a number in [0, 1); lo and hi are scalars of its dtype.
Array between(const Array& unit, const Array& lo, const Array& hi);
/// Standard normal, from a number in [0, 1).
Array normal_of_unit(const Array& unit);

/// Draws of a shape.
Array unit_uniform(const Array& key, const Shape& shape, DType t);
Array uniform_between(const Array& key, const Shape& shape, DType t, double lo, double hi);

}  // namespace shardarray::random
