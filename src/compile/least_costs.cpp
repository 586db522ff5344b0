#include "compile/least_costs.h"

namespace shardarray {

namespace {

std::int64_t tiles_of(const std::vector<int>& axes, const SubAxes& sub_axes) {
  std::int64_t tiles = 1;
  for (const int a : axes) tiles *= sub_axes.size(a);
  return tiles;
}

}  // namespace

LeastCosts::LeastCosts(NodePrice& price, const NodeState& s, const SubAxes& sub_axes,
                       const std::vector<const DealtUnit*>& units, const Assignment& fixed)
    : price_(price), units_(units) {
  for (const std::vector<int>& axes : fixed) fixed_tiles_.push_back(tiles_of(axes, sub_axes));
  for (const DealtUnit* u : units) unit_tiles_.push_back(tiles_of(u->sub_axes, sub_axes));
  const auto add = [&](const TermState& t, std::size_t number, bool is_result) {
    std::vector<bool> matters(fixed.size(), false);
    for (const DimFactors& dim : *t.factors)
      for (const int f : dim) matters[static_cast<std::size_t>(f)] = true;
    for (std::size_t f = 0; f < fixed.size() && is_result; f++)
      if (s.rule->factors[f].role == Role::reduce) matters[f] = true;
    Term term{number, is_result, false, {}, {}};
    for (std::size_t j = 0; j < number && !is_result; j++)
      term.may_be_free |= s.node->in[j] == s.node->in[number];
    std::uint32_t ways = 1;
    for (const DealtUnit* u : units) {
      std::uint32_t kinds = 1;  // the first: none of its factors
      std::vector<std::uint32_t>& places = term.places.emplace_back();
      for (const std::size_t f : u->factors) places.push_back(matters[f] ? ways * kinds++ : 0);
      places.push_back(0);
      ways *= kinds;
    }
    for (std::vector<double>& costs : term.costs) costs.assign(ways, unknown);
    terms_.push_back(std::move(term));
  };
  for (std::size_t k = 0; k < s.operands.size(); k++) add(s.operands[k], k, false);
  for (std::size_t k = 0; k < s.results.size(); k++) add(s.results[k], k, true);
}

}  // namespace shardarray
