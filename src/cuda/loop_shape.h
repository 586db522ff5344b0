// What a Loop's table says of places, and what all its items have in common.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/program.h"

namespace shardarray::cuda {

/// What a kernel reads and writes in a launch: its arguments, then the dimensions whose index it asks for.
struct LoopOperands {
  explicit LoopOperands(const Kernel& k);
  std::size_t count() const { return arguments + indices.size(); }
  /// count(): not there.
  std::size_t number_of_index(std::size_t dim) const;
  std::size_t arguments;
  std::vector<std::size_t> indices;
};

/// Axes along which the operands of every item move: what printed kernels are made for, and nothing else of the items.
struct LoopShape {
  /// How an operand moves along an axis in all items: not at all; by one element (an index: by 1); as the table says.
  enum class Move : std::uint8_t { none, one, any };
  std::uint32_t outer_axes = 0, axes = 0;
  bool small = true;  ///< every item has at most `most_small` outer, and so many inner points
  static constexpr std::int64_t most_small =
      (std::int64_t{1} << 31) - (1 << 25);  ///< and a step of a grid is an int32
  std::vector<Move> moves;                  ///< by operand, then by axis
  /// Neighbouring outer points lie beside each other, neighbouring inner ones do not, as in sums of columns. The printed kernel has
  /// blocks of device::column_threads threads, no others; without it, of any number of warps.
  bool columns = false;
  /// A power of two, 16 at most: the indices along the last outer axis begin at multiples of it, in every item.
  std::uint32_t index_unit = 16;
  /// Whether threads may take several neighbours at once (run_length()).
  bool runs = true;
  /// Warps that work on an outer point together, a block of the order of its sums each; more than one: where rows are long. They are
  /// all that the printed kernel's blocks have.
  std::uint32_t row_warps = 1;
  /// Elements of the longest row, in whole warps, where rows are kept (kept_rows.h); else 0.
  std::uint32_t kept_points = 0;
  /// Where blocks read transposed operands in tiles (transposed()): the axis along which these lie in memory, and how many points a
  /// tile has along it and along the last axis. The printed kernel has blocks of device::printed_threads threads, no others. Else 0.
  std::uint32_t tile_axis = 0, tile_side = 0;

  Move move(std::size_t operand, std::uint32_t axis) const { return moves[operand * axes + axis]; }
  friend bool operator==(const LoopShape&, const LoopShape&) = default;
};

/// Whether 32 lanes work on an outer point.
bool has_inner_stage(const Kernel& k);
/// How many neighbours along the last axis a thread takes at once where an item's places allow it: so many that the widest
/// elements are one access of 16 bytes, or fewer where the text would become long. 1: kernels with inner stages, others that do
/// not walk through memory in this direction.
std::uint32_t run_length(const Kernel& k, const LoopShape& shape);
/// Whether the operand's elements of a run are one access, if places and strides are multiples of its size.
bool moves_in_runs(const LoopShape& shape, std::size_t operand);

/// The arguments of which the printed kernel's blocks read tiles into shared memory: neighbours in memory are neighbours along the
/// tiles' axis, and apart along the last one. As many as that memory holds.
std::vector<std::size_t> transposed(const Kernel& k, const LoopShape& shape);
/// Bytes of an argument's tile.
std::uint32_t tile_bytes(const Kernel& k, const LoopShape& shape, std::size_t argument);
/// Operations that the instruction becomes, roughly.
std::uint32_t operation_cost(const Instr& in);
/// The printed kernel's launch: threads of a block, at most, and how many blocks a multiprocessor must have room for.
struct PrintedBounds {
  std::uint32_t threads, blocks;
};
PrintedBounds printed_bounds(const Kernel& k, const LoopShape& shape);

/// The axes of a loop: neighbouring dimensions that all operands of all items walk through in one sequence are one axis.
class LoopAxes {
 public:
  LoopAxes(const Loop& loop, const LoopOperands& operands);
  std::uint32_t outer() const { return static_cast<std::uint32_t>(outer_); }
  std::uint32_t count() const { return static_cast<std::uint32_t>(count_); }
  /// Of an item, by axis.
  const std::vector<std::int64_t>& extents(std::size_t item) const { return items_[item].extents; }
  /// Of an item in bytes (of an index: its steps), by operand, then by axis.
  std::vector<std::int64_t> strides(std::size_t item) const;
  LoopShape shape() const;
  /// Of the item that has most.
  std::int64_t tiles(const LoopShape& shape) const;

 private:
  struct Item {
    std::vector<std::int64_t> extents;
    std::vector<std::vector<std::int64_t>> strides;  // by axis and operand
  };
  std::vector<std::int64_t> steps(std::size_t item, std::size_t dim) const;
  void add(std::size_t dim);
  bool may_join(std::size_t item, std::int64_t extent, const std::vector<std::int64_t>& steps) const;
  LoopShape::Move move(std::size_t operand, std::size_t axis) const;
  bool in_columns(const LoopShape& shape) const;
  std::uint32_t index_unit(const LoopShape& shape) const;
  std::uint32_t row_warps() const;
  std::uint32_t kept_points(LoopShape shape) const;
  bool has_few_rows() const;
  void choose_tiles(LoopShape& shape) const;
  bool is_long(std::size_t axis) const;

  const Loop& loop_;
  const LoopOperands& operands_;
  std::size_t outer_ = 0, first_ = 0,
              count_ = 0;  // outer axes; the first axis of this group of dimensions; all
  std::vector<Item> items_;
};

}  // namespace shardarray::cuda
