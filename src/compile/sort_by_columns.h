// Sorts along sharded dimensions.
#pragma once
#include "compile/passes.h"

namespace shardarray {

/// The graph with sorts of lines that are in equal parts on g devices done by columns (F. T. Leighton, Tight bounds on the complexity of
/// parallel sorting, 1985), if that moves less than gathering whole lines. Each device sorts its part and deals it out to all, one by one;
/// sorts what it got and deals that out, in blocks; sorts again. Then every element is less than g^2 places from its own, and the
/// neighbourhoods of the borders are sorted once more. All sizes are known before the run: of each operand a device receives 2 (g - 1) / g
/// parts and 2 g^2 elements, where a whole line is g - 1 parts. Equal keys keep their order by their positions, which become an operand;
/// but not if numbers are sorted alone on a line that is not `reproducible`, where the order of 0 and -0 is left open. None: there is no
/// such sort, or a line of the program has a policy, so the program is placed as it stands.
std::optional<FlatGraph> sort_by_columns(const FlatGraph& g, const Propagation& p);

}  // namespace shardarray
