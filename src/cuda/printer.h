// Kernel IR as CUDA C++: straight lines of typed values between the reads and writes of kernels/printed.cuh. The text compiles
// for the host too.
//
// Names in the text: v<instruction> values, in runs v<instruction>_<neighbour>, w<instruction> what is read and z<instruction> what
// is calculated for all of them, r<instruction> reductions, p<argument> places at domain point 0, b<operand> the beginnings of
// indices, q<argument> what load_at asks for, k<argument> and m<instruction> rows that are kept,
// t<argument> tiles, s<operand>_<axis> strides, e<axis> extents, n<axis> tiles along an axis, c<axis> the coordinate at
// which a tile begins, x<axis> coordinates.
#pragma once
#include <string>

#include "cuda/loop_shape.h"
#include "runtime/kernel.h"

namespace shardarray::cuda {

/// What printed kernels need before them: one line that includes kernels/printed.cuh.
std::string printed_prelude();
/// The kernel `name`, which does what interpreting kernels do with the same tables of loops of this kernel, if the shape of the
/// loop (LoopAxes) is `shape`. Bits are the interpreter's, but those of NaNs; sums are ordered for 32 lanes, whatever k.order says of lanes.
std::string print_kernel(const Kernel& k, const LoopShape& shape, const std::string& name);

}  // namespace shardarray::cuda
