// One instruction on known operands.
#pragma once
#include <cstdint>

#include "runtime/kernel.h"

namespace shardarray {

/// The bits of the result of `in` (no load, index, store or reduce) for operands of type `operand` (select:
/// of its values) with the bits a, b, c. The same arithmetic as everywhere: scalar.h.
std::uint64_t evaluate_instruction(const Instr& in, DType operand, std::uint64_t a, std::uint64_t b,
                                   std::uint64_t c);
/// The bits of `value` as `type`: to nearest for floats, truncated and saturated for integers.
std::uint64_t bits_of(DType type, double value);
/// What every lane of a reduction starts at.
std::uint64_t identity_bits(Reducer r, DType type);
/// The opcode that combines two lanes.
Code combining_code(Reducer r);

}  // namespace shardarray
