// What a program moves by name: the compiler need not ask whether it may.
#pragma once
#include "graph/op.h"

namespace shardarray {

/// The operand of a collective: moving it, and what is only rearranged or reduced of it, is what the program asks for.
/// Nothing is left of it in the compiled program.
extern const Op op_asked;

/// `x` as a collective takes it.
Array asked(const Array& x);

}  // namespace shardarray
