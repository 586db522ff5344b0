// Own matrix product of floats, of any shape, by every instruction set.
//
// Each element is one chain of fused multiply-adds over k, ascending from 0, or blocks of them where it is long (scalar.h): the
// bits depend neither on how a product is cut nor on the instruction set. Where no order is asked for, chains of some hundred steps
// are added, which rounds less.
#pragma once
#include <cstddef>
#include <cstdint>

namespace shardarray {

/// C[i, j] = sum over p of A[i, p] B[p, j]. Strides in elements; C's columns are contiguous, and so are B's columns or its rows
/// (b_col or b_row is 1). All sizes >= 1.
template <class T> struct OwnGemm {
  std::int64_t m, n, k;
  const T* a;
  std::int64_t a_row, a_col;
  const T* b;
  std::int64_t b_row, b_col;
  T* c;
  std::int64_t c_row;
  bool one_chain = true;  ///< else no order is asked for
};

struct OwnGemmTable {
  void (*f32)(const OwnGemm<float>& g);
  void (*f64)(const OwnGemm<double>& g);
};
extern const OwnGemmTable own_gemm_baseline, own_gemm_v3, own_gemm_v4;
/// The one for this machine.
const OwnGemmTable& own_gemm();

/// Room for packed operands, of this thread, until it asks again. Throws std::bad_alloc.
void* packing_space(std::size_t bytes);
/// Of a packed panel of B that leaves room for A and C in a core's second cache.
std::int64_t panel_bytes();

}  // namespace shardarray
