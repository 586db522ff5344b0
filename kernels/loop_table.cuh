// The table of a Loop step, read by interpreting and printed kernels.
#pragma once
#include "kernels/device.cuh"

namespace shardarray::device {

inline constexpr int most_axes = 32;
inline constexpr int printed_threads = 256;  // most threads of a block of a printed kernel
inline constexpr int column_threads = 1024;  // threads of a block with column teams, always

/// An operand of an item, or an index: then address.offset is its value at domain point 0.
struct LoopArgument {
  Address address;
  std::int64_t row_stride, lo, count;  ///< load_at; the stride in bytes
};
struct LoopItem {
  std::int64_t outer_points, inner_points;
  std::uint32_t outer_axes, axes;
  std::uint32_t extents;    ///< int64 per axis
  std::uint32_t arguments;  ///< LoopArgument
  std::uint32_t strides;    ///< int64 per argument and axis, in bytes; for an index: its steps
  std::uint32_t unused;
};
struct Instruction;  // the interpreter's
struct LoopStage;
struct Reduction;
struct LoopTable {
  List<Instruction> code;
  List<LoopStage> stages;
  List<Reduction> reductions;
  List<LoopItem> items;
  std::int64_t block;  ///< inner points
};

}  // namespace shardarray::device
