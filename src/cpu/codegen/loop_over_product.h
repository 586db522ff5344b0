// Loops over the elements of a product, which can run on each part of it while that is in cache, or as its epilogue.
#pragma once
#include <array>
#include <cstddef>
#include <optional>

#include "cpu/work_list.h"

namespace shardarray {

/// A loop over the elements of a product C.
struct LoopOverProduct {
  std::size_t product = 0;        ///< the argument that is C
  std::array<int, 3> dimensions;  ///< C's batch, rows, columns in the loop's domain; -1: one point
  bool keep = true;               ///< something else reads C
};

/// None for another kind of loop, or one that touches more of C at a point than that point's element.
std::optional<LoopOverProduct> over_product(const Work& loop, const GemmSpec& g, const Ref& c,
                                            const MemoryRange& c_range);
/// The loop as an epilogue; none if its kernel cannot be one.
std::optional<GemmEpilogue> epilogue_of(const Work& loop, const LoopOverProduct& found);

}  // namespace shardarray
