// Which results are made where they are needed, instead of moved there.
#pragma once
#include "compile/passes.h"

namespace shardarray {

enum class Making : std::uint8_t {
  once,      // in one layout, by the node's strategy
  anywhere,  // wherever needed, from no data on devices but scalars: constants, iota, masks of them
  at_use,    // wherever needed, from operand 0, which is smaller and moves instead: broadcasts
};
/// Per node. `rules`: per node.
std::vector<Making> makings(const FlatGraph& g, const std::vector<Rule>& rules);

/// The layout of operand k from which each device can make its part of a result in `layout`. For nodes that are made anywhere or at use,
/// whose dimensions have one factor each.
const Layout* layout_of_operand(const Rule& rule, std::size_t k, const Layout& layout);
/// The layout of the result if operand 0 stays in `layout`; without partial sums.
const Layout* layout_of_result(const Rule& rule, const Layout& layout);

}  // namespace shardarray
