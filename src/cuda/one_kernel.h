// Which programs are one kernel of one block, or of a cluster of blocks: those whose launches have so little to do that beginning and
// ending them is most of their time.
#pragma once
#include <cstddef>
#include <cstdint>

#include "runtime/program.h"

namespace shardarray::cuda {

/// What a run of a program does; called programs as often as they run.
struct ProgramWork {
  double steps = 0;
  double points = 0;         ///< of loops, exchanges and library calls, over all items
  double multiply_adds = 0;  ///< of products
  double chain = 0;  ///< the longest one that a thread has to follow: of a scan, of a product of fixed order
};
ProgramWork work_of(const Program& program);

/// A step of its own takes 1 or 2 microseconds more than one within a kernel, in which a multiprocessor, or as many as a cluster has
/// blocks, does what a step does on average, at most. Steps wait for each other for 0.4 us in a block, 0.7 us in a cluster (H200),
/// which wins from about 4,000 points a step. The plug-in of the tests has numbers of its own.
struct OneKernelLimits {
  double points_a_step = 4096;       ///< for each block
  double multiply_adds_a_point = 8;  ///< that take as long as a point of a loop
  double cluster_chain = 128;        ///< longer ones are made sooner by the launches of a whole GPU
  double steps = 1 << 17;            ///< of a run: the GPU does nothing else meanwhile, for about 0.1 s
  std::size_t printed_steps = 64;    ///< of the text, which takes NVRTC tens of milliseconds each
  std::size_t bases = 1000;          ///< addresses of a run: 8 KB of arguments
  int depth = 2;                     ///< programs that are called by called ones, and so on
};
const OneKernelLimits& one_kernel_limits();

/// Blocks of the kernel that a program on one GPU is: 1, or `cluster`, what the GPU can have at once for each other; 0: it is none.
std::uint32_t one_kernel_blocks(const Program& program, std::uint32_t cluster);

}  // namespace shardarray::cuda
