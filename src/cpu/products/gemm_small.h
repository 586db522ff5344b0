// Own matrix product: for small shapes, where a BLAS call costs more than the work, and for everything
// without a BLAS.
//
// Each element is one chain of fused multiply-adds over k, ascending from 0, or blocks of them where it is long (scalar.h): the
// bits depend neither on the blocking nor on the instruction set.
#pragma once
#include <cstdint>

namespace shardarray {

/// C[i, j] = sum over p of A[i, p] B[p, j]. Strides in elements; C's columns are contiguous. All sizes >= 1.
template <class T> struct SmallGemm {
  std::int64_t m, n, k;
  const T* a;
  std::int64_t a_row, a_col;
  const T* b;
  std::int64_t b_row, b_col;
  T* c;
  std::int64_t c_row;
};

struct SmallGemmTable {
  void (*f32)(const SmallGemm<float>& g);
  void (*f64)(const SmallGemm<double>& g);
};
extern const SmallGemmTable small_gemm_baseline, small_gemm_v3;

}  // namespace shardarray
