// The blocks of a picture: tiles, or groups of neighbouring tiles if there are too many to draw.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/ceil_div.h"
#include "layout/layout.h"
#include "shardarray/sharding.h"

namespace shardarray {

/// One dimension of a picture, with its non-empty tiles. `fold` tiles form a block; the last block may have fewer.
struct BlockDim {
  std::int64_t size = 1, tiles = 1, fold = 1;
  std::int64_t count() const { return ceil_div(tiles, fold); }
  /// The index range of a block.
  IndexRange range(std::int64_t block) const;
  /// The block's fraction of the dimension.
  double share(std::int64_t block) const;
  /// Increases the tiles per block: to the next divisor of the number of tiles, at most twofold.
  void fold_more();
};

/// All blocks of a value; none for an empty value.
struct Blocks {
  std::string platform;               ///< of the devices
  std::vector<BlockDim> dims;         ///< the last two are drawn; vectors and scalars are one row
  std::vector<std::vector<int>> ids;  ///< device ids of each block, ascending; row-major
  std::vector<int> empty_ids;         ///< ids of devices with an empty tile, ascending
  bool is_flat = false;               ///< vector or scalar

  const BlockDim& rows() const { return dims[dims.size() - 2]; }
  const BlockDim& columns() const { return dims.back(); }
  std::int64_t per_facet() const { return rows().count() * columns().count(); }
  /// The number of two-dimensional pictures: one per index of the leading dimensions.
  std::int64_t facets() const { return static_cast<std::int64_t>(ids.size()) / per_facet(); }
  /// The indices of facet k: `[0:2, :, :]`.
  std::string facet_text(std::int64_t k) const;
  /// Tiles per block: `1 x 8`; empty if every block is one tile.
  std::string fold_text() const;
};

/// The dimensions of a picture, folded to few enough facets and rows.
std::vector<BlockDim> block_dims(const Shape& shape, const Layout& layout);
/// The blocks of these dimensions.
Blocks make_blocks(const Layout& layout, std::vector<BlockDim> dims);
/// `0:2`; `:` for a whole dimension.
std::string range_text(const IndexRange& range);

}  // namespace shardarray
