// A program as the text of one kernel: what its launches do, one after the other in one block or a cluster of them, with a barrier behind
// each. Programs that it calls are loops around what theirs do.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "runtime/program.h"

namespace shardarray::cuda {

/// The kernel is `program_kernel_name`, of blocks of program_threads threads; its third argument is as many addresses as the
/// program has bases, behind 8 bytes of zero (Bases of kernels/device.cuh with a longer list). Its bits are those of the launches.
struct ProgramText {
  std::string text;
  std::vector<std::byte> tables;  ///< the first argument, 16-byte aligned
  std::size_t scratch_bytes = 0;  ///< what the second one has room for
  std::size_t bases = 0;          ///< addresses of the third
};
inline constexpr char program_kernel_name[] = "shardarray_program";
/// Of a program that is one kernel of `blocks` (one_kernel.h); `alignment`: bytes that all its bases are multiples of.
ProgramText print_program(const Program& program, std::uint64_t alignment, std::uint32_t blocks = 1);

}  // namespace shardarray::cuda
