// Target: what the compiler knows of the platform that runs its programs. Every number that suits one kind of machine stands here,
// and is filled in by its backend.
#pragma once
#include <cstdint>
#include <limits>

#include "runtime/kernel.h"

namespace shardarray {

struct Target {
  /// Of float sums and products, but of `reproducible` lines, whose order is everywhere the default.
  ReductionOrder reductions = {};
  /// Sums of at least `min_points` elements for each of fewer than `most_results` results are made in up to `parts` parts first, one
  /// for a worker, of at least `part_points` elements each. Those of all results together are no more than `rows`.
  struct Split {
    std::int64_t min_points = 0, most_results = 0, parts = 0, part_points = 1,
                 rows = std::numeric_limits<std::int64_t>::max();
  } split;
  /// Loops are fused up to so many operations. What is computed point by point before a sum over rows is computed once more
  /// where the sum is used, not stored, for at least `enough_rows` rows of a tile, or where the tile has at most `few_points`.
  struct Fusion {
    std::int64_t most_operations = 0, enough_rows = 0, few_points = 0;
  } fusion;
  /// A step costs so much to begin that small loops of one kernel are one step.
  bool gathers_loops = false;
  /// Products of 16-bit floats come as they are, with sums in float32; else their operands are made float32 first.
  bool half_products = false;
  std::int64_t alignment = 1;  ///< of scratch blocks, bytes
  /// What the choice of a placement weighs, in bytes received by the busiest device.
  struct Links {
    double start = 0;       ///< of a transfer, whatever it moves
    double halo_start = 0;  ///< of a transfer between neighbours, whatever it moves
    double operation = 0;   ///< arithmetic of one element on the busiest device
    /// The same in products, by what is multiplied; of the dtypes without one, and where it is 0: `operation`.
    double float16_product = 0, bfloat16_product = 0, float64_product = 0, tf32_product = 0;
    std::int64_t together = 0;  ///< small sums over the same axes are one transfer, of at most so many bytes
  } links;
  /// Bytes of arrays and temporaries that each device can hold; 0: not known.
  std::int64_t device_memory = 0;
};

}  // namespace shardarray
