// The table of a called program in the kernel of its caller: what host and device agree on.
#pragma once
#include "kernels/device.cuh"

namespace shardarray::device {

inline constexpr std::uint32_t program_threads = 1024;  // of a block of a program's kernel

/// Where a base of the called program is: at its first run, then at runs of even and of odd numbers; `stride` bytes are added with
/// every run.
struct CalledBase {
  Address first, even, odd;
  std::int64_t stride;
};
struct CalledTable {
  List<CalledBase> bases;
};

}  // namespace shardarray::device
