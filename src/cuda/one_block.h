// Which programs are one kernel of one block: those whose launches have so little to do that beginning and ending them is most of
// their time.
#pragma once
#include <cstddef>

#include "runtime/program.h"

namespace shardarray::cuda {

/// What a run of a program does; called programs as often as they run.
struct ProgramWork {
  double steps = 0;
  double points = 0;         ///< of loops, exchanges and library calls, over all items
  double multiply_adds = 0;  ///< of products
};
ProgramWork work_of(const Program& program);

/// Guesses, to be measured. A step of its own takes 1 or 2 microseconds more than one within a kernel, in which a multiprocessor
/// does what a step does on average, at most. The plug-in of the tests has numbers of its own.
struct OneBlockLimits {
  double points_a_step = 4096;
  double multiply_adds_a_point = 8;  ///< that take as long as a point of a loop
  double steps = 1 << 17;            ///< of a run: the GPU does nothing else meanwhile, for about 0.1 s
  std::size_t printed_steps = 64;    ///< of the text, which takes NVRTC tens of milliseconds each
  std::size_t bases = 1000;          ///< addresses of a run: 8 KB of arguments
  int depth = 2;                     ///< programs that are called by called ones, and so on
};
const OneBlockLimits& one_block_limits();

/// Of a program on one GPU.
bool fits_one_block(const Program& program);

}  // namespace shardarray::cuda
