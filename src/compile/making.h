// Which results a program makes where they are needed, instead of moving them there.
#pragma once
#include "compile/passes.h"

namespace shardarray {

enum class Making : std::uint8_t {
  once,      // in one place: that of the node's strategy
  anywhere,  // wherever it is needed, of nothing that lies on devices but scalars: constants, iota, masks of them
  at_use,  // wherever it is needed, of operand 0, which is smaller and is moved instead: a broadcast
};
/// Of every node. `rules`: of every node.
std::vector<Making> makings(const FlatGraph& g, const std::vector<Rule>& rules);

/// Where operand k has to be, so that each device makes its part of a result in `layout` by itself. Of nodes that are made anywhere
/// or at use: every dimension of theirs has one factor.
const Layout* layout_of_operand(const Rule& rule, std::size_t k, const Layout& layout);
/// Where the result is, if operand 0 stays in `layout`; without partial sums.
const Layout* layout_of_result(const Rule& rule, const Layout& layout);

}  // namespace shardarray
