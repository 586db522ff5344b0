// Looking at shardings in a terminal.
#pragma once
#include <array>
#include <functional>
#include <optional>
#include <string>

#include "shardarray/dtype.h"
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
  int max_width = 80;  ///< of every line, in columns; from 0 to 10000, 20 at least are taken
  /// From [0, 1] to the background of a block, asked once per block; by default the 20 colours of
  /// matplotlib's tab20b.
  std::function<Rgb(double)> color_map = nullptr;
};

/// The picture of a value of `shape` cut by `sharding`: one block per tile with the ids of the devices that hold it. Vectors and
/// matrices are drawn as JAX draws them, scalars as vectors of one element; of more dimensions the last two, once for each piece
/// of the others, with what is shown above it. Lines end in newlines.
///
///     ┌───────┬───────┐      [0:2, :, :]  [2:4, :, :]
///     │CPU 0,1│CPU 2,3│      ┌─────────┐  ┌─────────┐
///     └───────┴───────┘      │  CPU 0  │  │  CPU 1  │
///                            └─────────┘  └─────────┘
///
/// Every device is named, more than 8 in a block by runs: `0-15`, every fourth as `0-28:4`, of every 16 the first 4 as `0-51:4/16`.
/// Only what exists is drawn: a line below names the devices whose tile is empty, and an empty value has no boxes.
/// Where there are too many tiles to label each, neighbours are one block, which a line below says; `sharding_table` lists every
/// tile. Where the devices of a block are too many for it, it has a letter, and a line below names them. Throws Error for options
/// out of range, ShardingError for a sharding that does not fit the rank, ShapeError for a shape that no array has.
[[nodiscard]] SHARDARRAY_API std::string render_sharding(const Shape& shape, const Sharding& sharding,
                                                         const VisualizeOptions& options = {},
                                                         Where w = Where::here());

/// Prints that picture; in colours when standard output is a terminal that shows them, by COLORTERM (truecolor, 24bit) or TERM
/// (..-direct; the nearest of 256 colours: ..256color..), and NO_COLOR is unset or empty; no wider than the terminal, without one than
/// COLUMNS. Throws as render_sharding().
SHARDARRAY_API void visualize_sharding(const Shape& shape, const Sharding& sharding,
                                       const VisualizeOptions& options = {}, Where w = Where::here());

/// A table for values of any rank, one row per device: device, index, shape of its piece, replica id (`empty` where the piece is: such
/// pieces are no replicas), and of a value that is a sum over some axes (P(unreduced(...))) which summand. Throws ShardingError for a
/// sharding that does not fit the rank.
[[nodiscard]] SHARDARRAY_API std::string sharding_table(const Shape& shape, const Sharding& sharding,
                                                        Where w = Where::here());

/// What differs between two shardings of a value of `shape`: for devices whose pieces differ, what they hold in `from` and in
/// `to`, how much of that they have already and how much each must receive, in elements, or in bytes of a `dtype`; then the devices
/// whose pieces are the same, and sums. Devices with the same pieces are one row. A device outside of a sharding's mesh has a `-`. Of an
/// [8,4] from P("x") to P(none, "x") over x = 4:
///
///     devices  from      to        keep        receive
///     cpu:0    (0:2, :)  (:, 0:1)  2 elements  6 elements
///     cpu:1    (2:4, :)  (:, 1:2)  2 elements  6 elements
///     cpu:2    (4:6, :)  (:, 2:3)  2 elements  6 elements
///     cpu:3    (6:8, :)  (:, 3:4)  2 elements  6 elements
///     Devices receive 24 elements in all, at most 6 elements each (all_to_all {x}).
///
/// Throws ShardingError for a sharding that does not fit the rank, ShapeError for a shape that no array has.
[[nodiscard]] SHARDARRAY_API std::string render_diff(const Shape& shape, const Sharding& from,
                                                     const Sharding& to,
                                                     std::optional<DType> dtype = std::nullopt,
                                                     Where w = Where::here());

/// Prints that. Throws as render_diff().
SHARDARRAY_API void visualize_diff(const Shape& shape, const Sharding& from, const Sharding& to,
                                   std::optional<DType> dtype = std::nullopt, Where w = Where::here());

}  // namespace shardarray
