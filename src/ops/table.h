// All ops that src/ops defines.
#pragma once
#include <span>

#include "graph/op.h"

namespace shardarray {

extern const std::span<const Op*const> arithmetic_ops, math_ops, logic_ops, movement_ops, slicing_ops,
    reduce_ops, dot_ops, gather_ops, structure_ops, collective_ops, host_ops;

/// Every op but the three of graph/op.cpp (input, constant, identity).
std::span<const Op* const> all_ops();

}  // namespace shardarray
