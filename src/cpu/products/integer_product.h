// Products of integer matrices, whose sums wrap, and of bools (whether any pair is true twice).
#pragma once
#include <cstdint>

#include "shardarray/dtype.h"

namespace shardarray {

/// C [m, n] = A [m, k] B [k, n]. Strides are elements; C's columns are neighbours.
struct IntegerProduct {
  std::int64_t m, n, k;
  const void* a;
  std::int64_t a_row, a_col;
  const void* b;
  std::int64_t b_row, b_col;
  void* c;
  std::int64_t ldc;
};
using IntegerProductFunction = void (*)(const IntegerProduct& x);
/// Of bool and integers; null: of nothing else. Compiled for every CPU, x86-64-v3 and v4; the bits are the same.
IntegerProductFunction integer_product_baseline(DType t);
IntegerProductFunction integer_product_v3(DType t);
IntegerProductFunction integer_product_v4(DType t);

}  // namespace shardarray
