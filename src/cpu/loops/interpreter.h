// The interpreter of kernel IR: runs one item of a Loop step over rows of up to 256 elements.
//
// Everything independent of addresses is decided once: merged dimensions, the mode, the place of each value's row, one function pointer per
// instruction. A run allocates nothing.
//   columns  rows run over outer points; an inner stage repeats its instructions for every inner point
//   rows     one outer point at a time; rows of an inner stage run over inner points
// Both give the same bits, since the lanes of reductions are part of kernel IR.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cpu/loops/loops.h"
#include "runtime/program.h"

namespace shardarray {

enum class LoopMode : std::uint8_t { columns, rows };

/// The domain's dimensions are split into two groups: `run`, along which rows go, and `walk`, fixed within a row. Strides are in bytes; for
/// an index, its steps. Outermost first, adjacent ones merged, none of size 1.
struct LoopAxis {
  std::int64_t extent, stride;
};
/// An argument as one stage accesses it, or an index (`is_index`: `offset` is its value at domain point 0).
struct Access {
  std::uint32_t base = 0;
  std::int64_t offset = 0;
  std::vector<LoopAxis> run, walk;
  std::uint8_t size_log2 = 0;
  bool is_index = false;
  bool contiguous = false;                         ///< `run` is at most one axis, with contiguous elements
  std::int64_t row_stride = 0, lo = 0, count = 0;  ///< load_at
};

// A slot is an entry of the table of row addresses.
struct LoadRow {
  std::uint16_t access, slot;
  std::int32_t
      copy;  ///< the slot whose memory holds the row if the argument's own cannot; -1: always in place
};
struct StoreRow {
  std::uint16_t access, slot;
  std::int32_t copy;  ///< as above
  bool direct;        ///< the row is computed in the argument's memory
};
struct OpRow {
  RowFunction function;  ///< null: a load_at through access b
  std::uint16_t dst, a, b, c;
};
struct ReduceRow {
  RowFunction combine, accumulate, fold;
  std::uint16_t src, dst, identity;  ///< dst: lane 0, followed by the others
  std::int32_t lanes;
  std::uint32_t lane_bytes;  ///< lane stride
  std::uint8_t size_log2;
  RowFunction add_rounded_off, with_rounded_off;  ///< for sums, else null
  BlockFunction accumulate_blocks;
  /// Inner points, a power of two; `blocks`: there are several blocks, whose total and its rounding error follow the lanes.
  std::int64_t block;
  bool blocks;
};
struct StageRows {
  bool inner = false;
  std::vector<OpRow> enter;  ///< rows mode: once per outer point, rows filled with values of outer stages
  std::vector<LoadRow> loads;
  std::vector<OpRow> ops;
  std::vector<StoreRow> stores;
  std::vector<ReduceRow> reduces;
};

class LoopPlan {
 public:
  static constexpr std::size_t max_rank = 32;

  /// Throws InternalError if the kernel breaks the rules of kernel.h or its arguments overlap illegally.
  LoopPlan(std::shared_ptr<const Kernel> kernel, const Loop::Item& item);
  /// With a given mode and inner loops.
  LoopPlan(const Kernel& kernel, const Loop::Item& item, LoopMode mode, const Loops& loops);

  /// Runs outer points [begin, end) of `units()`; any split gives the same bits.
  void run(void* const* bases, std::int64_t begin, std::int64_t end) const;
  std::int64_t units() const { return outer_count_; }
  /// With fewer columns at a time every row would be read in partial cache lines: 4096 x 1000 floats in chunks of 31 columns take three
  /// times as long as in chunks of 62.
  std::int64_t least_units() const {
    if (mode_ != LoopMode::columns || inner_count_ <= 1) return 1;
    return outer_count_ >= 256 ? 64 : 16;  // few columns: still cache lines, and some for every worker
  }
  /// A rough estimate for all units.
  double cost_ns() const { return cost_ns_; }
  LoopMode mode() const { return mode_; }

 private:
  friend class LoopPlanner;
  class Run;

  const Loops* loops_;
  LoopMode mode_;
  std::int64_t outer_count_ = 1, inner_count_ = 1;
  std::int64_t tile_ = 256;
  std::vector<Access> accesses_;
  StageRows once_narrow_, once_;  // tile-invariant: one element (rows mode, outer stages) or a row
  std::vector<StageRows> stages_;
  // Slots: rows in scratch, rows whose address varies by tile, constants.
  std::vector<std::uint32_t> row_offset_;  // offsets in scratch
  std::size_t first_constant_ = 0;
  std::vector<std::shared_ptr<const std::vector<std::byte>>> constants_;
  std::size_t scratch_bytes_ = 0;
  double cost_ns_ = 0;
};

}  // namespace shardarray
