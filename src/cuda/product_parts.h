// Split-K: a product of few elements and great depth would occupy few multiprocessors; it becomes products of parts of its depth in one
// call, whose results a kernel adds up.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda/driver.h"
#include "cuda/products.h"

namespace shardarray::cuda {

/// The numbers of parts worth trying on a GPU with so many multiprocessors; ascending divisors of the depth. Empty for most products.
std::vector<std::int64_t> part_counts(const ProductCall& call, int multiprocessors);
/// The call for the parts; `call` itself is unsplit. By pointer arrays if the parts of all products have no common stride.
ProductCall in_parts(const ProductCall& call, std::int64_t parts);
/// Bytes at the start of the scratch memory that the parts' results take; 0: not split. A multiple of 256.
std::size_t bytes_of_parts(const ProductCall& call);

/// The launch after such a call.
struct PartsSum {
  const char* kernel = "";
  Grid grid;
  std::vector<std::byte> table;
};
PartsSum sum_of_parts(const ProductCall& call);

}  // namespace shardarray::cuda
