// Maps a product step to cuBLASLt calls: which items it takes, and which of them share a call.
//
// Row-major C = A B is column-major C' = B' A', and a row-major matrix read as column-major is its transpose: a call's first factor is B.
// Which items share a call depends on the step alone, never on addresses, so a program's bits repeat.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda/product_epilogue.h"
#include "runtime/program.h"

namespace shardarray::cuda {

/// The base of the scratch memory that a run's launches share.
inline constexpr std::uint32_t scratch_base = ~std::uint32_t{0};

/// One matrix of each product of a call, column-major.
struct ProductMatrix {
  std::vector<Ref> refs;  ///< one ref, with `stride` elements between products; or one per product
  std::int64_t rows = 0, columns = 0, ld = 0, stride = 0;
  std::uint32_t alignment = 0;   ///< bytes that all their addresses are multiples of, at most 64
  std::int64_t part_stride = 0;  ///< between the parts of a matrix
};
/// result = first second, `batch` times; or max(first second + bias, 0), or part of it.
struct ProductCall {
  DType in = DType::float32, out = DType::float32;
  bool transpose_first = false, transpose_second = false;
  bool tf32 = false;  ///< if float32
  std::int64_t batch = 1;
  ProductMatrix first, second, result;
  ProductMatrix bias = {};  ///< a column added to all columns of the result; no refs: none
  bool relu = false;
  /// Each `parts` consecutive ones of the `batch` products are summands of one (product_parts.h): `result` is packed in the scratch memory,
  /// and `sum` is where the sums go.
  std::int64_t parts = 1;
  ProductMatrix sum = {};

  bool has_bias() const { return !bias.refs.empty(); }
  bool by_pointers() const { return result.refs.size() > 1; }
  std::int64_t depth() const { return transpose_first ? first.rows : first.columns; }
  /// Over the whole batch.
  double multiply_adds() const {
    return static_cast<double>(result.rows) * static_cast<double>(result.columns) *
           static_cast<double>(depth()) * static_cast<double>(batch);
  }
};

struct ProductSplit {
  std::vector<ProductCall> calls;
  std::vector<std::size_t> called;  ///< the items that the calls compute
  std::vector<std::size_t>
      own;  ///< items for our own kernel: small, of fixed order, of other dtypes. Without empty ones
};
/// Items with contiguous rows and a common B form one product; items at equal strides form one call, and so do equal shapes anywhere, by
/// pointer arrays. `alignment`: bytes that all bases are multiples of; `own`: up to so many multiply-adds a product that is not deep
/// (ProductLimits) uses our own kernel.
ProductSplit split_products(const Gemm& gemm, std::uint64_t alignment, double own);
/// The same for a product and the loop after it; the products of a call have one bias, or biases at equal strides.
ProductSplit split_products(const ProductEpilogue& both, std::uint64_t alignment, double own);

/// Whether both are the same products of the same matrices, neither by pointer arrays; only their epilogues may differ.
bool same_products(const ProductCall& a, const ProductCall& b);
/// One call per product, for a pointer-array call that the library does not support.
std::vector<ProductCall> single_products(const ProductCall& call);

}  // namespace shardarray::cuda
