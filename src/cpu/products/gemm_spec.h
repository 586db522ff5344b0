// GemmSpec: a small matrix product, with its epilogue, as generated code sees it. Every number is part of the code.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/kernel.h"
#include "shardarray/dtype.h"

namespace shardarray {

/// A kernel of one outer stage that runs on every element of a product while it is in a register.
struct GemmEpilogue {
  /// An argument's strides in bytes along C's batch, rows and columns.
  struct Walk {
    std::int64_t batch = 0, row = 0, col = 0;
  };
  std::shared_ptr<const Kernel> kernel;
  std::size_t product = 0;  ///< the argument that is C; the others follow A, B and C, in order
  std::vector<Walk> args;   ///< by argument of the kernel
  bool keep = true;         ///< C is stored too
};

/// C[i, j] = sum over p of A[i, p] B[p, j], float32 or float64, for every batch entry. Strides in elements; no size is 0. Each element is
/// one chain of fused multiply-adds over p, ascending from 0, like a short one in OwnGemm.
struct GemmSpec {
  DType type = DType::float32;
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  std::int64_t a_row = 0, a_col = 0, a_batch = 0;
  std::int64_t b_row = 0, b_col = 0, b_batch = 0;
  std::int64_t c_row = 0, c_col = 1, c_batch = 0;
  std::optional<GemmEpilogue> epilogue = std::nullopt;

  /// Equal words, equal code; never equal to another kind of spec's key.
  std::vector<std::uint64_t> key() const;
  /// The transposed product C^T = B^T A^T.
  GemmSpec transposed() const {
    GemmSpec t = {type,  batch, n,       m,     k,     b_col,   b_row,   b_batch,
                  a_col, a_row, a_batch, c_col, c_row, c_batch, epilogue};
    if (t.epilogue)
      for (GemmEpilogue::Walk& w : t.epilogue->args) std::swap(w.row, w.col);
    return t;
  }
};

}  // namespace shardarray
