// Products of few elements and great depth, which would keep few of a GPU's multiprocessors busy: as products of parts of the depth,
// all of them in one call, whose results a kernel adds up.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda/driver.h"
#include "cuda/products.h"

namespace shardarray::cuda {

/// Into how many parts it is worth trying to cut the depth on a GPU of so many multiprocessors; ascending, all divide it. Most products
/// have none.
std::vector<std::int64_t> part_counts(const ProductCall& call, int multiprocessors);
/// The call of the parts, which is of no other. By addresses where the parts of all products are not the same distance apart.
ProductCall in_parts(const ProductCall& call, std::int64_t parts);
/// Of the scratch memory, from its beginning on, that the results of the parts take; 0: it has none. 256-byte aligned.
std::size_t bytes_of_parts(const ProductCall& call);

/// The launch behind such a call.
struct PartsSum {
  const char* kernel = "";
  Grid grid;
  std::vector<std::byte> table;
};
PartsSum sum_of_parts(const ProductCall& call);

}  // namespace shardarray::cuda
