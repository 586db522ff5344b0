// Evaluates one instruction on constants.
#pragma once
#include <cstdint>

#include "runtime/kernel.h"

namespace shardarray {

/// The result's bits of `in` (no load, index, store or reduce) for operands of type `operand` (select: of its values) with the bits a, b,
/// c. The arithmetic is that of scalar.h.
std::uint64_t evaluate_instruction(const Instr& in, DType operand, std::uint64_t a, std::uint64_t b,
                                   std::uint64_t c);
/// The bits of `value` as `type`: floats are rounded to nearest, integers truncated and saturated.
std::uint64_t bits_of(DType type, double value);
/// The initial value of each lane of a reduction.
std::uint64_t identity_bits(Reducer r, DType type);
/// The opcode that combines two lanes.
Code combining_code(Reducer r);

}  // namespace shardarray
