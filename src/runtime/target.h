// Target: what the compiler knows about the platform that runs its programs. All machine-dependent numbers are here, filled in by the
// backend.
#pragma once
#include <cstdint>
#include <limits>

#include "runtime/kernel.h"

namespace shardarray {

struct Target {
  /// Order of float sums and products; lines under `reproducible` always use the default order.
  ReductionOrder reductions = {};
  /// Split reductions: sums of at least `min_points` elements each, for fewer than `most_results` results, are first computed in up to
  /// `parts` parts (one per worker) of at least `part_points` elements. All results together have at most `rows` parts.
  struct Split {
    std::int64_t min_points = 0, most_results = 0, parts = 0, part_points = 1,
                 rows = std::numeric_limits<std::int64_t>::max();
  } split;
  /// Loops are fused up to this many operations. Elementwise inputs of a sum over rows are recomputed where the sum is used, instead of
  /// stored, if a tile has at least `enough_rows` rows, or at most `few_points` points.
  struct Fusion {
    std::int64_t most_operations = 0, enough_rows = 0, few_points = 0;
  } fusion;
  /// Launching a step is expensive, so small loops of the same kernel are gathered into one step.
  bool gathers_loops = false;
  /// Products of 16-bit floats are supported directly, with float32 sums; otherwise their operands are first converted to float32.
  bool half_products = false;
  std::int64_t alignment = 1;  ///< of scratch blocks, bytes
  /// Weights for the choice of placements, in bytes received by the busiest device.
  struct Links {
    double start = 0;       ///< fixed cost of a transfer
    double halo_start = 0;  ///< fixed cost of a transfer between neighbours
    double operation = 0;   ///< one elementwise operation on the busiest device
    /// The same for products, by operand dtype; 0, and other dtypes: `operation`.
    double float16_product = 0, bfloat16_product = 0, float64_product = 0, tf32_product = 0;
    std::int64_t together = 0;  ///< small sums over the same axes are one transfer of at most so many bytes
  } links;
  /// Bytes of arrays and temporaries that each device can hold; 0: unknown.
  std::int64_t device_memory = 0;
};

}  // namespace shardarray
