// Our own matrix product of scattered operands: rows, columns and steps have offset tables, as elements under windows do.
//
// Each element is one chain of fused multiply-adds over k, ascending from 0: the bits depend on neither the blocking nor the instruction
// set.
#pragma once
#include <cstdint>

namespace shardarray {

/// c[c_run[r] + c_row[i] + j] = sum over p of a[a_row[i] + a_step[p]] b[b_run[r] + b_step[p] + j], for j from 0 to n - 1 and every run r of
/// columns. Offsets in elements; all sizes >= 1.
template <class T> struct TableGemm {
  std::int64_t m, n, k;
  const T* a;
  const std::int64_t *a_row, *a_step;
  const T* b;
  const std::int64_t* b_step;
  T* c;
  const std::int64_t* c_row;
  std::int64_t runs = 1;
  const std::int64_t *b_run = &no_distance, *c_run = &no_distance;
  static constexpr std::int64_t no_distance = 0;
};

struct TableGemmTable {
  void (*f32)(const TableGemm<float>& g);
  void (*f64)(const TableGemm<double>& g);
};
extern const TableGemmTable table_gemm_baseline, table_gemm_v3, table_gemm_v4;
/// This machine's.
const TableGemmTable& table_gemm();

}  // namespace shardarray
