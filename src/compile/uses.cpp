#include "compile/uses.h"

#include <algorithm>

#include "base/at.h"
#include "graph/op.h"

namespace shardarray {

Uses::Uses(const FlatGraph& g) : nodes(g.types.size()), is_output(g.types.size()) {
  for (const int v : g.outputs) at(is_output, v) = true;
  for (std::size_t i = 0; i < g.nodes.size(); i++)
    for (const int v : g.nodes[i].in) at(nodes, v).push_back(static_cast<int>(i));
  for (const FlatNode& n : g.nodes)
    if (n.op->trait == Trait::asked) {
      const int v = n.in[0], out = n.first_out;
      for (const int u : at(nodes, v))
        if (&at(g.nodes, u) != &n) at(nodes, out).push_back(u);
      if (at(is_output, v)) at(is_output, out) = true;
    }
}

bool Uses::has_one(int v) const {
  const std::vector<int>& all = at(nodes, v);
  return !at(is_output, v) && std::ranges::all_of(all, [&](int i) { return i == all[0]; });
}

detail::RecordedLine Uses::line_of(const FlatNode& n, const FlatGraph& g) const {
  const FlatNode* at_use = &n;
  for (int steps = 0; steps < 8 && at_use->op && at_use->where.line == 0; steps++) {
    const std::vector<int>& users = at(nodes, at_use->first_out);
    if (users.empty()) break;
    at_use = &at(g.nodes, users[0]);
  }
  return at_use->where;
}

}  // namespace shardarray
