// A program as launches of hand-written kernels (kernels/).
//
// Every kernel is
//   extern "C" __global__ void NAME(const std::byte* table, std::byte* scratch, shardarray::device::Bases bases)
// One launch serves all items of a step: the grid is {blocks, items}.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cuda/loop_shape.h"
#include "cuda/pair_sort.h"
#include "cuda/products.h"
#include "runtime/program.h"
#include "runtime/target.h"
#include "shardarray/where.h"

namespace shardarray::cuda {

struct KernelLaunch {
  const char* kernel = "";  ///< its name in the fatbin
  /// A kernel that does the same from the same table with blocks of any size: mostly the same one. `points`: the threads that have work in
  /// it, for the largest item.
  const char* any_block_kernel = "";
  std::int64_t points = 0;
  std::uint32_t blocks = 1, items = 1, threads = 1;  ///< the grid {blocks, items}; threads per block
  std::vector<std::byte> table;                      ///< 16-byte aligned in device memory
  /// Scratch memory of the kernel. A step may be several launches: consecutive launches get the same memory, and find what earlier ones
  /// wrote. 64-byte aligned.
  std::size_t scratch_bytes = 0;
  std::string label;                 ///< of the step, for messages
  Where where;                       ///< of the step
  std::vector<std::uint32_t> bases;  ///< the base addresses that it may use, ascending
  /// For a loop: the kernel IR from which print_kernel() makes a kernel that reads the same table. Else null.
  std::shared_ptr<const Kernel> loop;
  LoopShape shape;
  std::uint32_t printed_blocks = 1, printed_threads = 1;  ///< `blocks` and `threads` of the printed kernel
  /// For large products: cuBLASLt calls that replace the kernel; for all of its products, or empty.
  std::vector<ProductCall> products;
  /// Calls that replace this launch and the next one, one by one. Or empty.
  std::vector<ProductCall> products_and_next;
  PairSort sort;  ///< replaces the kernel, if it has pairs
  /// Replaces the kernel: a program whose launches are run here, once per run. Else null; owned by the program.
  const ProgramCall* call = nullptr;
  std::uint64_t alignment = 0;  ///< of the bases of the called program
};

/// Bytes: the minimum alignment of buffers that backends give to programs.
inline constexpr std::uint64_t buffer_alignment = 64;
/// Appends the launches of one step; for a called program, one that refers to it. Throws CompileError if no kernel does the step.
void add_step_launches(const Step& step, std::uint64_t alignment, std::vector<KernelLaunch>& to);
/// The launches of a program, in order; `alignment`: bytes that all its bases are multiples of.
std::vector<KernelLaunch> launches_of(const Program& program, std::uint64_t alignment = buffer_alignment);

/// The compiler's target for CUDA devices.
const Target& cuda_target();

}  // namespace shardarray::cuda
