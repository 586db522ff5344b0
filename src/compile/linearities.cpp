#include "compile/linearities.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/at.h"

namespace shardarray {

double literal(int v, const FlatGraph& g) {
  const FlatNode* n = &at(g.nodes, at(g.producer, v));
  while (n->op->trait == Trait::like) n = &at(g.nodes, at(g.producer, n->in[0]));
  if (n->op->form == Form::map && n->in_types[0].shape.empty()) n = &at(g.nodes, at(g.producer, n->in[0]));
  const bool is_literal = n->op->trait == Trait::literal;
  if (is_literal && n->attrs->dtype == DType::float64) return std::bit_cast<double>(n->attrs->bits);
  if (is_literal && n->attrs->dtype == DType::float32)
    return std::bit_cast<float>(static_cast<std::uint32_t>(n->attrs->bits));
  if (is_literal && n->attrs->bits == 0) return 0;
  return std::numeric_limits<double>::quiet_NaN();
}

std::vector<Linear> linearities(const FlatNode& n, const FlatGraph& g, bool summands_asked) {
  std::vector<Linear> r(n.in.size(), Linear::no);
  if (!n.op->linearity) return r;
  std::vector<double> literals;
  for (int v : n.in) literals.push_back(literal(v, g));
  Call c = n.call();
  c.literals = literals;
  c.summands_asked = summands_asked;
  for (std::size_t k = 0; k < r.size(); k++) {
    r[k] = linearity(c, static_cast<int>(k));
    if (r[k] == Linear::joint && literals[k] == 0) r[k] = Linear::no;  // adding it changes no summand
  }
  return r;
}

std::vector<const Layout*> asked_summands(const SubAxes& sub_axes, const Preferences& p, const FlatNode& n) {
  std::vector<const Layout*> asked;
  for (int v = n.first_out; v < n.first_out + static_cast<int>(n.out_types.size()); v++)
    asked.push_back(at(p.unreduced, v).empty()
                        ? nullptr
                        : to_layout(sub_axes, at(p.dims, v), at(p.unreduced, v), Reducer::sum));
  return asked;
}

std::vector<bool> wanted_summands(const FlatGraph& g, const Preferences& preferences) {
  std::vector<bool> wanted;
  wanted.reserve(preferences.unreduced.size());
  for (const SubAxisList& sub_axes : preferences.unreduced) wanted.push_back(!sub_axes.empty());
  if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) return wanted;
  for (auto n = g.nodes.rbegin(); n != g.nodes.rend(); ++n) {
    if (n->op->form == Form::leaf || !at(wanted, n->first_out)) continue;
    const std::vector<Linear> linear = linearities(*n, g, true);
    for (std::size_t k = 0; k < n->in.size(); k++)
      if (linear[k] != Linear::no) at(wanted, n->in[k]) = true;
  }
  return wanted;
}

}  // namespace shardarray
