// What the blocks of a picture are: tiles, or neighbouring tiles together where there are too many to draw each.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/ceil_div.h"
#include "layout/layout.h"
#include "shardarray/sharding.h"

namespace shardarray {

/// One dimension of a picture: its tiles that hold something. Every `fold` of them are a block; the last one may have fewer.
struct BlockDim {
  std::int64_t size = 1, tiles = 1, fold = 1;
  std::int64_t count() const { return ceil_div(tiles, fold); }
  /// What the block holds.
  IndexRange range(std::int64_t block) const;
  /// Its share of the dimension.
  double share(std::int64_t block) const;
  /// More tiles to a block: by as little as a divisor of all tiles allows, at most twice as many.
  void fold_more();
};

/// All blocks of a value; an empty value has none.
struct Blocks {
  std::string platform;               ///< of the devices
  std::vector<BlockDim> dims;         ///< the last two are drawn; vectors and scalars are one row
  std::vector<std::vector<int>> ids;  ///< of the devices that hold a block, ascending; row-major
  std::vector<int> empty_ids;         ///< of the devices whose tile is empty, ascending
  bool is_flat = false;               ///< a vector or a scalar

  const BlockDim& rows() const { return dims[dims.size() - 2]; }
  const BlockDim& columns() const { return dims.back(); }
  std::int64_t per_facet() const { return rows().count() * columns().count(); }
  /// How many pictures of two dimensions there are: one for each place in the leading dimensions.
  std::int64_t facets() const { return static_cast<std::int64_t>(ids.size()) / per_facet(); }
  /// What facet k shows: `[0:2, :, :]`.
  std::string facet_text(std::int64_t k) const;
  /// Of a block, in tiles: `1 x 8`; empty where every block is a tile.
  std::string fold_text() const;
};

/// The dimensions of a picture of few enough facets and rows.
std::vector<BlockDim> block_dims(const Shape& shape, const Layout& layout);
/// The blocks of such dimensions.
Blocks make_blocks(const Layout& layout, std::vector<BlockDim> dims);
/// `0:2`; `:` for a whole dimension.
std::string range_text(const IndexRange& range);

}  // namespace shardarray
