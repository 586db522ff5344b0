#include "compile/making.h"

#include <algorithm>

#include "base/at.h"
#include "compile/assignment.h"

namespace shardarray {

namespace {

bool is_local(const FlatNode& n, const Rule& rule) {
  const bool only_passes = std::all_of(rule.factors.begin(), rule.factors.end(),
                                       [](const Factor& f) { return f.role == Role::pass || f.size == 1; });
  return (n.op->form == Form::map || is_elementwise(n.op->form)) && only_passes && !n.op->effect;
}

// The layout of a term with factors `to`: sharded like the dimensions of `from` with the same factors.
const Layout* along(const std::vector<DimFactors>& from, const Layout& layout,
                    const std::vector<DimFactors>& to) {
  std::vector<AxisList> dims(to.size());
  for (std::size_t d = 0; d < to.size(); d++)
    for (std::size_t e = 0; e < from.size(); e++)
      if (from[e] == to[d]) dims[d] = layout.dims()[e];
  return Layout::of(layout.order(), std::move(dims));
}

}  // namespace

std::vector<Making> makings(const FlatGraph& g, const std::vector<Rule>& rules) {
  constexpr int deepest = 64;  // what takes more operations is made once
  std::vector<Making> r(g.nodes.size(), Making::once);
  std::vector<int> depth(r.size(), 0);
  for (std::size_t i = 0; i < r.size(); i++) {
    const FlatNode& n = g.nodes[i];
    for (const int v : n.in) depth[i] = std::max(depth[i], at(depth, at(g.producer, v)) + 1);
    const auto is_made_anywhere = [&](int v) {  // but a `like` value is placed like another one
      const int node = at(g.producer, v);
      return at(r, node) == Making::anywhere && at(g.nodes, node).op->trait != Trait::like;
    };
    const bool of_nothing = !n.in.empty() && depth[i] <= deepest &&
                            std::all_of(n.in.begin(), n.in.end(), is_made_anywhere) && is_local(n, rules[i]);
    if (is_free(g, static_cast<int>(i)) || of_nothing) r[i] = Making::anywhere;
    else if (n.op->form == Form::map && is_local(n, rules[i]) &&
             at(r, at(g.producer, n.in[0])) != Making::anywhere &&  // which nothing has to read
             num_elements(n.out_types[0].shape) > num_elements(n.in_types[0].shape))
      r[i] = Making::at_use;
  }
  return r;
}

const Layout* layout_of_operand(const Rule& rule, std::size_t k, const Layout& layout) {
  return along(rule.results[0], layout, rule.operands[k]);
}

const Layout* layout_of_result(const Rule& rule, const Layout& layout) {
  return along(rule.operands[0], layout, rule.results[0]);
}

}  // namespace shardarray
