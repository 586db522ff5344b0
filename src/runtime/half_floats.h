// float16 and bfloat16: stored as their bits; kernels compute in float32 and round after every operation, so that fusion changes no bits.
// Sums and matrix products run in float32 (simplify) and are rounded once.
#pragma once
#include "runtime/kernel_builder.h"

namespace shardarray {

inline bool is_half(DType t) { return t == DType::float16 || t == DType::bfloat16; }
/// The type of a kernel argument of type t in memory, and of its values.
inline DType stored_type(DType t) { return is_half(t) ? DType::uint16 : t; }
inline DType computed_type(DType t) { return is_half(t) ? DType::float32 : t; }

/// The float32 value of the bits (uint16) of a t.
int widen(KernelBuilder& b, int bits, DType t);
/// The bits of the t nearest to v (float32), ties to even.
int narrow(KernelBuilder& b, int v, DType t);
/// v rounded once to t, as float32. v may have any type.
int round_to(KernelBuilder& b, int v, DType t);

}  // namespace shardarray
