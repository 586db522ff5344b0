// Pictures of shardings for the terminal.
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
  /// Colours instead of boxes. By default `visualize_sharding` uses them on a colour terminal, `render_sharding` does not.
  std::optional<bool> use_color = std::nullopt;
  double scale = 1.0;  ///< size of the picture: 1 draws the full value about 10 lines high; from 0 to 1000
  int min_width = 9;   ///< of a block, in columns; from 0 to 10000
  int max_width = 80;  ///< of every line, in columns; from 0 to 10000, at least 20 are used
  /// Maps [0, 1] to the background colour of a block; called once per block. Default: the 20 colours of matplotlib's tab20b.
  std::function<Rgb(double)> color_map = nullptr;
};

/// Draws how `sharding` splits a value of `shape`: one block per tile, with the ids of the devices that hold it. Vectors and matrices are
/// drawn as by JAX, scalars as one-element vectors; with more dimensions, the last two are drawn for each tile of the others, under a
/// line with its index. Lines end in newlines.
///
///     ┌───────┬───────┐      [0:2, :, :]  [2:4, :, :]
///     │CPU 0,1│CPU 2,3│      ┌─────────┐  ┌─────────┐
///     └───────┴───────┘      │  CPU 0  │  │  CPU 1  │
///                            └─────────┘  └─────────┘
///
/// Every device is listed; more than 8 in a block as runs: `0-15`, every fourth as `0-28:4`, the first 4 of every 16 as `0-51:4/16`. Only
/// what exists is drawn: devices with an empty tile are named below, and an empty value has no boxes. If there are too many tiles to
/// label, neighbours share a block, which a line below explains; `sharding_table` lists every tile. If a block has too many devices, it
/// gets a letter, and a line below names them. Throws Error for options out of range, ShardingError for a sharding that does not fit the
/// rank, ShapeError for an impossible shape.
[[nodiscard]] SHARDARRAY_API std::string render_sharding(const Shape& shape, const Sharding& sharding,
                                                         const VisualizeOptions& options = {},
                                                         Where w = Where::here());

/// Prints that picture; in colours if standard output is a terminal that supports them according to COLORTERM (truecolor, 24bit) or TERM
/// (..-direct; ..256color.. for the nearest of 256 colours), and NO_COLOR is unset or empty; no wider than the terminal or, without one,
/// COLUMNS. Throws as render_sharding().
SHARDARRAY_API void visualize_sharding(const Shape& shape, const Sharding& sharding,
                                       const VisualizeOptions& options = {}, Where w = Where::here());

/// A table for values of any rank with one row per device: device, index, shard shape, replica id (`empty` for an empty shard, which is
/// no replica) and, for values unreduced over some axes (P(unreduced(...))), which term of the sum. Throws ShardingError for a sharding
/// that does not fit the rank.
[[nodiscard]] SHARDARRAY_API std::string sharding_table(const Shape& shape, const Sharding& sharding,
                                                        Where w = Where::here());

/// Shows how two shardings of a value of `shape` differ: for devices whose shards differ, their shard in `from` and in `to`, how much of
/// the latter they already hold and how much they must receive, in elements or, given a `dtype`, in bytes; then the devices whose shards
/// are equal, and totals. Devices with equal shards share a row; a device outside a sharding's mesh has a `-`. For an [8,4] from P("x")
/// to P(none, "x") over x = 4:
///
///     devices  from      to        keep        receive
///     cpu:0    (0:2, :)  (:, 0:1)  2 elements  6 elements
///     cpu:1    (2:4, :)  (:, 1:2)  2 elements  6 elements
///     cpu:2    (4:6, :)  (:, 2:3)  2 elements  6 elements
///     cpu:3    (6:8, :)  (:, 3:4)  2 elements  6 elements
///     Devices receive 24 elements in all, at most 6 elements each (all_to_all {x}).
///
/// Throws ShardingError for a sharding that does not fit the rank, ShapeError for an impossible shape.
[[nodiscard]] SHARDARRAY_API std::string render_diff(const Shape& shape, const Sharding& from,
                                                     const Sharding& to,
                                                     std::optional<DType> dtype = std::nullopt,
                                                     Where w = Where::here());

/// Prints render_diff(). Throws as it does.
SHARDARRAY_API void visualize_diff(const Shape& shape, const Sharding& from, const Sharding& to,
                                   std::optional<DType> dtype = std::nullopt, Where w = Where::here());

}  // namespace shardarray
