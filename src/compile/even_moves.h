// Bytes of movements between placements that cut evenly, by sub-axes alone: of a thousand ways to place a node most are passed over
// by these, and no layout is made for them.
#pragma once
#include <cstdint>
#include <optional>

#include "compile/passes.h"

namespace shardarray {

/// What the busiest device receives where a value of `shape` moves from one placement to another, in elements: most_missing()
/// (layout/tiles.h) of their layouts. None where tiles differ in size.
std::optional<std::int64_t> even_move(const SubAxisDims& from, const SubAxisDims& to, const Shape& shape,
                                      const SubAxes& sub_axes);

/// Into how many parts sub-axes cut what they cut.
std::int64_t parts_of(const SubAxisList& list, const SubAxes& sub_axes);

/// Elements of the largest tile.
std::int64_t tile_elements(const SubAxisDims& dims, const Shape& shape, const SubAxes& sub_axes);

}  // namespace shardarray
