// In which order several operands of an einsum are multiplied.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace shardarray {

/// Extent of each letter.
using LetterSizes = double[128];

/// Which two of the terms that are left are multiplied next, until one is: the product stands where the first of them stood, the
/// second one goes. The cheapest of all orders by multiplications for up to five terms, beyond always the cheapest pair; of equally
/// cheap ones the one from left to right.
std::vector<std::pair<std::size_t, std::size_t>> contraction_order(std::vector<std::string> terms,
                                                                   const std::string& result,
                                                                   const LetterSizes& sizes);

}  // namespace shardarray
