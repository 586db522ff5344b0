// Kernel IR as CUDA C++: straight-line code on typed values between the reads and writes of kernels/printed.cuh. The text compiles for the
// host too.
//
// Names in the text: v<instruction> values, in runs v<instruction>_<neighbour>; w<instruction> and z<instruction> what is loaded and
// computed for a whole run; r<instruction> reductions; p<argument> addresses at domain point 0; b<operand> starts of indices; q<argument>
// requested rows of load_at; k<argument> and m<instruction> kept rows; t<argument> tiles; s<operand>_<axis> strides; e<axis> extents;
// n<axis> tiles along an axis; c<axis> the coordinate at which a tile begins; x<axis> coordinates.
#pragma once
#include <string>

#include "cuda/loop_shape.h"
#include "runtime/kernel.h"

namespace shardarray::cuda {

/// The line that must precede printed kernels; it includes kernels/printed.cuh.
std::string printed_prelude();
/// The kernel `name`, which does what interpreting kernels do with the table of a loop with this kernel whose shape (LoopAxes) is `shape`.
/// Bits are the interpreter's, except for NaNs; sums are in the order for 32 lanes, whatever lanes k.order has.
std::string print_kernel(const Kernel& k, const LoopShape& shape, const std::string& name);

}  // namespace shardarray::cuda
