// Complex numbers are pairs: conversion between the dtypes of the part and the pair.
#pragma once
#include "shardarray/dtype.h"

namespace shardarray {

/// float32 for complex64, float64 for complex128; every other dtype is its own part.
constexpr DType part_type(DType t) {
  return t == DType::complex64 ? DType::float32 : t == DType::complex128 ? DType::float64 : t;
}
/// The complex dtype whose parts are float32 or float64.
constexpr DType pair_type(DType part) {
  return part == DType::float64 ? DType::complex128 : DType::complex64;
}

}  // namespace shardarray
