// Looking at shardings in a terminal.
#pragma once
#include <array>
#include <functional>
#include <optional>
#include <string>

#include "shardarray/export.h"
#include "shardarray/shape.h"
#include "shardarray/sharding.h"
#include "shardarray/where.h"

namespace shardarray {

/// Red, green and blue, each from 0 to 1.
using Rgb = std::array<double, 3>;

/// Options of the pictures.
struct VisualizeOptions {
  /// Colours instead of boxes. By default `visualize_sharding` uses them on a colour terminal,
  /// `render_sharding` does not.
  std::optional<bool> use_color = std::nullopt;
  double scale = 1.0;  ///< of the picture: 1 draws the whole value about 10 lines high; from 0 to 1000
  int min_width = 9;   ///< of a block, in columns; from 0 to 10000
  int max_width = 80;  ///< of a block and of the picture, in columns; from 0 to 10000
  /// From [0, 1] to the background of a block, asked once per block; by default the 20 colours of
  /// matplotlib's tab20b.
  std::function<Rgb(double)> color_map = nullptr;
};

/// The picture of a value of `shape` (rank 1 or 2) cut by `sharding`, as JAX draws it: one block per tile
/// with the ids of the devices that hold it. Lines end in newlines. Throws ShapeError for other ranks:
/// `sharding_table` shows those; Error for options out of range, ShardingError for a sharding that does not fit the rank.
///
///     ┌───────┬───────┐
///     │CPU 0,1│CPU 2,3│
///     └───────┴───────┘
[[nodiscard]] SHARDARRAY_API std::string render_sharding(const Shape& shape, const Sharding& sharding,
                                                         const VisualizeOptions& options = {},
                                                         Where w = Where::here());

/// Prints that picture; in colours when standard output is a terminal, NO_COLOR is unset and TERM is not
/// `dumb`. Throws as render_sharding().
SHARDARRAY_API void visualize_sharding(const Shape& shape, const Sharding& sharding,
                                       const VisualizeOptions& options = {}, Where w = Where::here());

/// A table for values of any rank, one row per device: device, index, shape of its piece, replica id. Throws ShardingError for a
/// sharding that does not fit the rank.
[[nodiscard]] SHARDARRAY_API std::string sharding_table(const Shape& shape, const Sharding& sharding,
                                                        Where w = Where::here());

}  // namespace shardarray
