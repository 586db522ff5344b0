// Our own matrix product of floats, for any shape and instruction set.
//
// Each element is one chain of fused multiply-adds over k, ascending from 0, or blocks of them if long (scalar.h): the bits depend on
// neither the blocking nor the instruction set. If the order is free, chains of a few hundred steps are added, which rounds less.
#pragma once
#include <cstddef>
#include <cstdint>

namespace shardarray {

/// Receives each part of C as soon as it is complete: rows [i, i + rows), columns [j, j + columns). All parts together are C.
struct PartOfC {
  /// Where a part is: in C, or elsewhere, with its first element at `at` and row stride `row`.
  struct Place {
    const void* at = nullptr;  ///< null: in C
    std::int64_t row = 0;
  };
  void (*take)(const void* object, std::int64_t i, std::int64_t rows, std::int64_t j, std::int64_t columns,
               const Place& place) = nullptr;
  const void* object = nullptr;
  bool keep = true;  ///< else C need not be stored
};

/// C[i, j] = sum over p of A[i, p] B[p, j]. Strides in elements; C's columns are contiguous, and so are B's columns or its rows (b_col or
/// b_row is 1). All sizes >= 1.
template <class T> struct OwnGemm {
  std::int64_t m, n, k;
  const T* a;
  std::int64_t a_row, a_col;
  const T* b;
  std::int64_t b_row, b_col;
  T* c;
  std::int64_t c_row;
  bool one_chain = true;  ///< else the order is free
  PartOfC part = {};
};

struct OwnGemmTable {
  void (*f32)(const OwnGemm<float>& g);
  void (*f64)(const OwnGemm<double>& g);
};
extern const OwnGemmTable own_gemm_baseline, own_gemm_v3, own_gemm_v4;
/// This machine's.
const OwnGemmTable& own_gemm();

/// This thread's memory for packed operands, valid until its next call. Throws std::bad_alloc.
void* packing_space(std::size_t bytes);
/// Size of a packed panel of B that leaves room for A and C in a core's L2 cache.
std::int64_t panel_bytes();

}  // namespace shardarray
