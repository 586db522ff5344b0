// What a Loop's table says about addresses, and what all its items have in common.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/program.h"

namespace shardarray::cuda {

/// What a kernel reads and writes in a launch: its arguments, then the dimensions whose index it uses.
struct LoopOperands {
  explicit LoopOperands(const Kernel& k);
  std::size_t count() const { return arguments + indices.size(); }
  /// count(): not present.
  std::size_t number_of_index(std::size_t dim) const;
  std::size_t arguments;
  std::vector<std::size_t> indices;
};

/// How the operands of all items move along the axes: printed kernels are specialized for this and for nothing else of the items.
struct LoopShape {
  /// How an operand moves along an axis in all items: not at all; by one element (an index: by 1); by the table's stride.
  enum class Move : std::uint8_t { none, one, any };
  std::uint32_t outer_axes = 0, axes = 0;
  bool small = true;  ///< every item has at most `most_small` outer and at most `most_small` inner points
  static constexpr std::int64_t most_small =
      (std::int64_t{1} << 31) - (1 << 25);  ///< so that adding a grid step stays within int32
  std::vector<Move> moves;                  ///< by operand, then by axis
  /// Adjacent outer points are adjacent in memory and adjacent inner ones are not, as in sums of columns. The printed kernel then has
  /// blocks of exactly device::column_threads threads; otherwise of any number of warps.
  bool columns = false;
  /// A power of two, at most 16: in every item, indices along the last outer axis begin at multiples of it.
  std::uint32_t index_unit = 16;
  /// Whether a thread may take several adjacent points at once (run_length()).
  bool runs = true;
  /// Warps that share an outer point, each taking one block of its sums' order at a time; more than one if rows are long. The printed
  /// kernel's blocks have exactly these warps.
  std::uint32_t row_warps = 1;
  /// Elements of the longest row, rounded up to whole warps, if rows are kept (kept_rows.h); else 0.
  std::uint32_t kept_points = 0;
  /// If blocks read transposed operands in tiles (transposed()): the axis along which these are contiguous, and a tile's points along it
  /// and along the last axis. The printed kernel then has blocks of exactly device::printed_threads threads. Else 0.
  std::uint32_t tile_axis = 0, tile_side = 0;

  Move move(std::size_t operand, std::uint32_t axis) const { return moves[operand * axes + axis]; }
  friend bool operator==(const LoopShape&, const LoopShape&) = default;
};

/// Whether 32 lanes share an outer point.
bool has_inner_stage(const Kernel& k);
/// How many adjacent points along the last axis a thread takes at once if alignment allows it: as many as make the widest elements one
/// 16-byte access, or fewer if the text would get long. 1 for kernels with inner stages, and for those not contiguous along this axis.
std::uint32_t run_length(const Kernel& k, const LoopShape& shape);
/// Whether the operand's elements of a run are one access, given aligned addresses and strides.
bool moves_in_runs(const LoopShape& shape, std::size_t operand);

/// The arguments that the printed kernel's blocks read in tiles through shared memory: contiguous along the tiles' axis and strided along
/// the last one. As many as that memory holds.
std::vector<std::size_t> transposed(const Kernel& k, const LoopShape& shape);
/// Bytes of an argument's tile.
std::uint32_t tile_bytes(const Kernel& k, const LoopShape& shape, std::size_t argument);
/// Roughly how many operations the instruction takes.
std::uint32_t operation_cost(const Instr& in);
/// Launch bounds of the printed kernel: most threads per block, and least blocks per multiprocessor.
struct PrintedBounds {
  std::uint32_t threads, blocks;
};
PrintedBounds printed_bounds(const Kernel& k, const LoopShape& shape);

/// The axes of a loop: adjacent dimensions that all operands of all items traverse contiguously are merged into one axis.
class LoopAxes {
 public:
  LoopAxes(const Loop& loop, const LoopOperands& operands);
  std::uint32_t outer() const { return static_cast<std::uint32_t>(outer_); }
  std::uint32_t count() const { return static_cast<std::uint32_t>(count_); }
  /// Of an item, by axis.
  const std::vector<std::int64_t>& extents(std::size_t item) const { return items_[item].extents; }
  /// Of an item in bytes (an index: its steps), by operand, then by axis.
  std::vector<std::int64_t> strides(std::size_t item) const;
  LoopShape shape() const;
  /// Of the item with most.
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
              count_ = 0;  // outer axes; the first axis of the current group of dimensions; all axes
  std::vector<Item> items_;
};

}  // namespace shardarray::cuda
