// float16 and bfloat16: memory holds their bits, kernels compute with float32 values that are rounded after every
// operation, so that fusing changes no bit. Sums and products of matrices run in float32 (simplify) and are rounded once.
#pragma once
#include "runtime/kernel_builder.h"

namespace shardarray {

inline bool is_half(DType t) { return t == DType::float16 || t == DType::bfloat16; }
/// What a kernel's argument of that type holds, and what its values are.
inline DType stored_type(DType t) { return is_half(t) ? DType::uint16 : t; }
inline DType computed_type(DType t) { return is_half(t) ? DType::float32 : t; }

/// The float32 value of bits (uint16) of the type t.
int widen(KernelBuilder& b, int bits, DType t);
/// The bits of the value of type t that is nearest to v (float32), ties to even.
int narrow(KernelBuilder& b, int v, DType t);
/// That value as float32. v may have any type: it is rounded once.
int round_to(KernelBuilder& b, int v, DType t);

}  // namespace shardarray
