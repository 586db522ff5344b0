// The table of a called program in its caller's kernel, shared by host and device.
#pragma once
#include "kernels/device.cuh"

namespace shardarray::device {

inline constexpr std::uint32_t program_threads = 1024;  // threads per block of a program's kernel

/// The address of a base of the called program: in its first run, then in even and odd runs; `stride` bytes are added with every run.
struct CalledBase {
  Address first, even, odd;
  std::int64_t stride;
};
struct CalledTable {
  List<CalledBase> bases;
};

}  // namespace shardarray::device
