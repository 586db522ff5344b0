#include "compile/node_facts.h"

#include <unordered_map>

#include "base/at.h"
#include "compile/linearities.h"
#include "compile/state_key.h"

namespace shardarray {

namespace {

// All that a price depends on except layouts. A broadcast that is made at its use counts with what it is made of.
StateKey fixed_key(const FlatNode& n, const Rule& rule, const FlatGraph& g, const std::vector<Rule>& rules,
                   const std::vector<Making>& makings) {
  StateKey key;
  key.reserve(96);  // enough for most nodes
  KeyWriter k(key);
  const Op& op = *n.op;
  k.add(static_cast<std::int64_t>(op.form));
  k.add(static_cast<std::int64_t>(n.modes->policy));
  if (op.form == Form::gemm) k.add(static_cast<std::int64_t>(n.modes->tf32));
  if (op.boxes || op.windows || rule.has(Role::scan)) {  // what neighbours send depends on them
    k.add(&op);
    k.add(n.attrs.get());
  }
  k.add(rule);
  for (std::size_t i = 0; i < n.in.size(); i++) {
    std::size_t same = 0;  // the first operand that is the same value
    while (n.in[same] != n.in[i]) same++;
    k.add(static_cast<std::int64_t>(same));
    k.add(n.in_types[i]);
    int v = n.in[i];
    for (; at(makings, at(g.producer, v)) == Making::at_use; v = at(g.nodes, at(g.producer, v)).in[0])
      k.add(at(rules, at(g.producer, v)));
    k.add(at(g.types, v));
  }
  for (const Type& t : n.out_types) k.add(t);
  return key;
}

}  // namespace

NodeFacts::NodeFacts(const FlatGraph& g, const Propagation& p)
    : makings(shardarray::makings(g, p.rules)), uses(g), wanted(wanted_summands(g, p.preferences)) {
  std::unordered_map<StateKey, int, StateHash> known;
  for (std::size_t i = 0; i < g.nodes.size(); i++) {
    const FlatNode& n = g.nodes[i];
    const bool is_leaf = n.op->form == Form::leaf;
    linear.push_back(is_leaf ? std::vector<Linear>() : linearities(n, g, at(wanted, n.first_out)));
    kinds.push_back(
        is_leaf
            ? -1
            : known.try_emplace(fixed_key(n, p.rules[i], g, p.rules, makings), static_cast<int>(known.size()))
                  .first->second);
  }
}

}  // namespace shardarray
