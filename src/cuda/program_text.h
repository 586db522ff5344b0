// A program as one kernel: one block or cluster does what its launches do, one after another, with a barrier after each. Called programs
// are loops around their launches.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "runtime/program.h"

namespace shardarray::cuda {

/// The kernel is `program_kernel_name`, with blocks of program_threads threads; its third argument is 8 zero bytes and the addresses of the
/// program's bases (Bases of kernels/device.cuh with a longer list). Its bits are those of the launches.
struct ProgramText {
  std::string text;
  std::vector<std::byte> tables;  ///< the first argument, 16-byte aligned
  std::size_t scratch_bytes = 0;  ///< bytes that the second argument points to
  std::size_t bases = 0;          ///< addresses in the third argument
};
inline constexpr char program_kernel_name[] = "shardarray_program";
/// For a program that is one kernel of `blocks` blocks (one_kernel.h); `alignment`: bytes that all its bases are multiples of.
ProgramText print_program(const Program& program, std::uint64_t alignment, std::uint32_t blocks = 1);

}  // namespace shardarray::cuda
