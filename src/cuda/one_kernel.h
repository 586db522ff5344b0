// Which programs become one kernel of one block or one cluster: those whose launches do so little that launch overhead dominates.
#pragma once
#include <cstddef>
#include <cstdint>

#include "runtime/program.h"

namespace shardarray::cuda {

/// The work of a program's run; called programs count once per call.
struct ProgramWork {
  double steps = 0;
  double points = 0;         ///< of loops, exchanges and library calls, over all items
  double multiply_adds = 0;  ///< of products
  double chain = 0;  ///< the longest sequential one of a thread: of a scan, of a product in fixed order
};
ProgramWork work_of(const Program& program);

/// A separate launch costs 1 to 2 us more than a step within a kernel. The limits let an average step fill one multiprocessor, or as many
/// as the cluster has blocks. A barrier takes 0.4 us in a block and 0.7 us in a cluster (H200), which wins from about 4,000 points per
/// step. The tests' plug-in has its own numbers.
struct OneKernelLimits {
  double points_a_step = 4096;       ///< per block
  double multiply_adds_a_point = 8;  ///< that cost as much as a point of a loop
  double cluster_chain = 128;        ///< longer chains are faster as launches on the whole GPU
  double steps = 1 << 17;            ///< per run: the GPU does nothing else for about 0.1 s
  std::size_t printed_steps = 64;    ///< in the text; NVRTC takes tens of milliseconds for each
  std::size_t bases = 1000;          ///< per run: 8 KB of arguments
  int depth = 2;                     ///< nesting of called programs
};
const OneKernelLimits& one_kernel_limits();

/// The number of blocks of a program's single kernel: 1, or `cluster`, the GPU's largest cluster; 0: it is not one kernel.
std::uint32_t one_kernel_blocks(const Program& program, std::uint32_t cluster);

}  // namespace shardarray::cuda
