// Bytes of moves between even shardings, from sub-axes alone: of a thousand ways to place a node these rule out most, without making their
// layouts.
#pragma once
#include <cstdint>
#include <optional>

#include "compile/passes.h"

namespace shardarray {

/// What the busiest device receives if a value of `shape` is resharded, in elements: most_missing() (layout/tiles.h) of the two layouts.
/// None if tiles differ in size.
std::optional<std::int64_t> even_move(const SubAxisDims& from, const SubAxisDims& to, const Shape& shape,
                                      const SubAxes& sub_axes);

/// The number of parts into which sub-axes shard a dimension.
std::int64_t parts_of(const SubAxisList& list, const SubAxes& sub_axes);

/// Elements of the largest tile.
std::int64_t tile_elements(const SubAxisDims& dims, const Shape& shape, const SubAxes& sub_axes);

}  // namespace shardarray
