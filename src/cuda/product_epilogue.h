// Fuses a product step and the loop after it: adding a bias, relu, or rounding the result to the operands' 16-bit dtype; the result is
// stored where the loop stores it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/program.h"
#include "runtime/step_ranges.h"

namespace shardarray::cuda {

/// A row added to each row of a product; that of the batch's next product is `stride` elements further.
struct ProductBias {
  Ref ref;
  std::int64_t stride = 0;
};
/// max(A B + bias, 0), or part of it.
struct ProductEpilogue {
  Gemm gemm;  ///< with C where the loop stores, in the dtype that it stores
  bool relu = false;
  std::vector<ProductBias> biases;  ///< by item; empty: no bias
};

/// Fuses steps `at` and `at` + 1 if the first is a product, the second does only the above to each of its results, and nothing else needs
/// what the first stored. Recognized from the kernel, never from names.
std::optional<ProductEpilogue> product_epilogue(const Program& program, std::size_t at);

/// Whether a step after number `at`, or the program's caller, may still read `r`.
bool is_read_behind(const Program& program, std::size_t at, const MemoryRange& r);

}  // namespace shardarray::cuda
