// A product step as calls of a library that multiplies matrices: which items it takes, and which of them are one call.
//
// Row-major C = A B is column-major C' = B' A', and a row-major matrix is its own transpose column by column: the first factor of
// a call is B. What is one call depends on the step alone, never on where its memory is: the bits of a program repeat.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda/product_epilogue.h"
#include "runtime/program.h"

namespace shardarray::cuda {

/// The base of what lies in the memory that the launches of a run share.
inline constexpr std::uint32_t scratch_base = ~std::uint32_t{0};

/// One matrix of each product of a call, column by column.
struct ProductMatrix {
  std::vector<Ref> refs;  ///< one, `stride` elements before that of the next product; or each product's own
  std::int64_t rows = 0, columns = 0, ld = 0, stride = 0;
  std::uint32_t alignment = 0;   ///< bytes that all their addresses are multiples of, 64 at most
  std::int64_t part_stride = 0;  ///< from one part of a matrix to the next one
};
/// result = first second, `batch` times; or max(first second + bias, 0), or less of it.
struct ProductCall {
  DType in = DType::float32, out = DType::float32;
  bool transpose_first = false, transpose_second = false;
  bool tf32 = false;  ///< of float32
  std::int64_t batch = 1;
  ProductMatrix first, second, result;
  ProductMatrix bias =
      {};  ///< a column of the result, that is added to all of its columns; no refs: there is none
  bool relu = false;
  /// Of `batch` products so many after each other are summands of one (product_parts.h): `result` is in the scratch memory, packed, and
  /// `sum` where their sums go.
  std::int64_t parts = 1;
  ProductMatrix sum = {};

  bool has_bias() const { return !bias.refs.empty(); }
  bool by_pointers() const { return result.refs.size() > 1; }
  std::int64_t depth() const { return transpose_first ? first.rows : first.columns; }
  /// Of all products together.
  double multiply_adds() const {
    return static_cast<double>(result.rows) * static_cast<double>(result.columns) *
           static_cast<double>(depth()) * static_cast<double>(batch);
  }
};

struct ProductSplit {
  std::vector<ProductCall> calls;
  std::vector<std::size_t> called;  ///< the items that the calls make
  std::vector<std::size_t>
      own;  ///< those of the own kernel: small, of a fixed order, of other dtypes. Without empty ones
};
/// Items whose rows follow each other and that share B are one product; items the same distance apart are one call, and so are
/// equal ones anywhere, by their addresses. `alignment`: bytes that all bases are multiples of; `own`: multiply-adds up to which a
/// product that is not deep (ProductLimits) is the own kernel's.
ProductSplit split_products(const Gemm& gemm, std::uint64_t alignment, double own);
/// The same of a product and the loop behind it; what is one call has one bias, or biases the same distance apart.
ProductSplit split_products(const ProductEpilogue& both, std::uint64_t alignment, double own);

/// Whether both are the same products of the same matrices, and neither is by addresses: only what becomes of them may differ.
bool same_products(const ProductCall& a, const ProductCall& b);
/// A call of each product by itself, for a call by addresses that the library does not do.
std::vector<ProductCall> single_products(const ProductCall& call);

}  // namespace shardarray::cuda
