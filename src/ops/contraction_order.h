// The order in which the operands of an einsum are multiplied.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace shardarray {

/// The extent of each letter.
using LetterSizes = double[128];

/// Which two of the remaining terms to multiply next, until one is left: the product replaces the first, the second is removed. For up to
/// five terms the order with fewest multiplications, for more the cheapest pair each time; ties go from left to right.
std::vector<std::pair<std::size_t, std::size_t>> contraction_order(std::vector<std::string> terms,
                                                                   const std::string& result,
                                                                   const LetterSizes& sizes);

}  // namespace shardarray
