// GemmSpec: a small matrix product as generated code sees it. Every number is part of the code.
#pragma once
#include <cstdint>
#include <vector>

#include "shardarray/dtype.h"

namespace shardarray {

/// C[i, j] = sum over p of A[i, p] B[p, j], float32 or float64, for every entry of a batch. Strides in elements; none of
/// the sizes is 0. Each element is one chain of fused multiply-adds over p, ascending from 0, as in SmallGemm.
struct GemmSpec {
  DType type = DType::float32;
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  std::int64_t a_row = 0, a_col = 0, a_batch = 0;
  std::int64_t b_row = 0, b_col = 0, b_batch = 0;
  std::int64_t c_row = 0, c_col = 1, c_batch = 0;

  /// Equal words, equal code; none is the key of a NestSpec.
  std::vector<std::uint64_t> key() const {
    std::vector<std::uint64_t> words = {2, static_cast<std::uint64_t>(type)};
    for (const std::int64_t x :
         {batch, m, n, k, a_row, a_col, a_batch, b_row, b_col, b_batch, c_row, c_col, c_batch})
      words.push_back(static_cast<std::uint64_t>(x));
    return words;
  }
  /// The transposed product C^T = B^T A^T.
  GemmSpec transposed() const {
    return {type, batch, n, m, k, b_col, b_row, b_batch, a_col, a_row, a_batch, c_col, c_row, c_batch};
  }
};

}  // namespace shardarray
