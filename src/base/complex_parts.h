// Complex numbers are pairs: the dtype of a part, and of the pair.
#pragma once
#include "shardarray/dtype.h"

namespace shardarray {

/// float32 of complex64, float64 of complex128; every other dtype is its own part.
constexpr DType part_type(DType t) {
  return t == DType::complex64 ? DType::float32 : t == DType::complex128 ? DType::float64 : t;
}
/// The complex dtype with parts of float32 or float64.
constexpr DType pair_type(DType part) {
  return part == DType::float64 ? DType::complex128 : DType::complex64;
}

}  // namespace shardarray
