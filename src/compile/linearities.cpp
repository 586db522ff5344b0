#include "compile/linearities.h"

#include <bit>
#include <limits>

#include "base/at.h"

namespace shardarray {

double literal(int v, const FlatGraph& g) {
  const FlatNode* n = &at(g.nodes, at(g.producer, v));
  if (n->op->form == Form::map && n->in_types[0].shape.empty()) n = &at(g.nodes, at(g.producer, n->in[0]));
  const bool is_literal = n->op->trait == Trait::literal;
  if (is_literal && n->attrs->dtype == DType::float64) return std::bit_cast<double>(n->attrs->bits);
  if (is_literal && n->attrs->dtype == DType::float32)
    return std::bit_cast<float>(static_cast<std::uint32_t>(n->attrs->bits));
  return std::numeric_limits<double>::quiet_NaN();
}

std::vector<Linear> linearities(const FlatNode& n, const FlatGraph& g) {
  std::vector<Linear> r(n.in.size(), Linear::no);
  if (!n.op->linearity) return r;
  std::vector<double> literals;
  for (int v : n.in) literals.push_back(literal(v, g));
  Call c = n.call();
  c.literals = literals;
  for (std::size_t k = 0; k < r.size(); k++) r[k] = linearity(c, static_cast<int>(k));
  return r;
}

}  // namespace shardarray
