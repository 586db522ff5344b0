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
  /// One that does the same from the same table in blocks of any size: mostly the same. `points`: threads that have something to do in
  /// it, of the largest item.
  const char* any_block_kernel = "";
  std::int64_t points = 0;
  std::uint32_t blocks = 1, items = 1, threads = 1;  ///< the grid {blocks, items}; threads of a block
  std::vector<std::byte> table;                      ///< 16-byte aligned where the kernel reads it
  /// Memory that the kernel uses. A step may be several launches: all that follow each other in a run get the same memory, and
  /// find there what those before wrote. 64-byte aligned.
  std::size_t scratch_bytes = 0;
  std::string label;                 ///< of the step, for messages
  Where where;                       ///< of the step
  std::vector<std::uint32_t> bases;  ///< which addresses of a run it may use, ascending
  /// Of a loop: what print_kernel() makes a kernel of that reads the same table. Else null.
  std::shared_ptr<const Kernel> loop;
  LoopShape shape;
  std::uint32_t printed_blocks = 1, printed_threads = 1;  ///< that kernel's, as `blocks` and `threads`
  /// Of large products: what cuBLASLt can do in the kernel's place. All of them, or none.
  std::vector<ProductCall> products;
  /// What it can do in the place of this launch and the next one, call by call. Or none.
  std::vector<ProductCall> products_and_next;
  PairSort sort;  ///< in place of a kernel, where it has pairs
  /// In place of a kernel: a program whose launches come here, run by run. Else null; it is the program's.
  const ProgramCall* call = nullptr;
  std::uint64_t alignment = 0;  ///< of the bases of the called program
};

/// Bytes: what backends give to programs is that much aligned at least.
inline constexpr std::uint64_t buffer_alignment = 64;
/// Appends the launches of one step; of a called program one that says so. Throws CompileError for what no kernel does.
void add_step_launches(const Step& step, std::uint64_t alignment, std::vector<KernelLaunch>& to);
/// The launches of a program, in order; `alignment`: bytes that all its bases are multiples of.
std::vector<KernelLaunch> launches_of(const Program& program, std::uint64_t alignment = buffer_alignment);

/// What programs for CUDA devices are compiled for.
const Target& cuda_target();

}  // namespace shardarray::cuda
