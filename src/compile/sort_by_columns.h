// Sorts along cut dimensions.
#pragma once
#include "compile/passes.h"

namespace shardarray {

/// The graph with sorts of lines that lie in equal parts on g devices by columns (F. T. Leighton, Tight bounds on the complexity of
/// parallel sorting, 1985), where that moves less than putting whole lines together. Each device sorts its part and deals it out to all,
/// one by one; sorts what it got and deals that out, in blocks; sorts again. Then every element is less than g^2 places from its own,
/// and what lies beside the borders is sorted once more. All sizes are known before the run: of each operand a device gets
/// 2 (g - 1) / g parts and 2 g^2 elements, where a whole line is g - 1 parts. Equal keys keep their order, by their positions, which are
/// an operand too. Not where numbers are sorted alone on a line that is not `reproducible`: whether 0 or -0 stands first is left open
/// there. None: there is no such sort, or a line of the program has a policy, so that it shall be placed as it stands.
std::optional<FlatGraph> sort_by_columns(const FlatGraph& g, const Propagation& p);

}  // namespace shardarray
