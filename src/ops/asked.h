// Data movement that the program asks for by name, so that policy::strict allows it.
#pragma once
#include "graph/op.h"

namespace shardarray {

/// Marks the operand of a collective: moving it, or what is rearranged or reduced from it, counts as requested. Disappears in the compiled
/// program.
extern const Op op_asked;

/// `x`, marked.
Array asked(const Array& x);

}  // namespace shardarray
