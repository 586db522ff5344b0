// A product step and the loop behind it as one: a bias that is added, the larger of a result and 0, or a result rounded to the 16 bits
// that its operands have, stored where the loop does it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/program.h"
#include "runtime/step_ranges.h"

namespace shardarray::cuda {

/// What is added to every row of a product: that of the next product of its batch stands `stride` elements further on.
struct ProductBias {
  Ref ref;
  std::int64_t stride = 0;
};
/// max(A B + bias, 0), or less of it.
struct ProductEpilogue {
  Gemm gemm;  ///< C is where the loop stores, of what it stores
  bool relu = false;
  std::vector<ProductBias> biases;  ///< by item; none where nothing is added
};

/// Steps `at` and the next one as one, where the first multiplies, the second does that to each of its results and nothing else, and
/// nobody misses what the first one stored. It is seen in the kernel, never in names.
std::optional<ProductEpilogue> product_epilogue(const Program& program, std::size_t at);

/// Whether steps behind number `at`, or whoever runs the program, may read what stands in `r` then.
bool is_read_behind(const Program& program, std::size_t at, const MemoryRange& r);

}  // namespace shardarray::cuda
