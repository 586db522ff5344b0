// Where one node runs: which sub_axes cut which of its factors, by cost.
#pragma once
#include <map>
#include <tuple>

#include "compile/assignment.h"
#include "compile/passes.h"

namespace shardarray {

/// One operand or result as the decision sees it.
struct TermState {
  Type type;
  const std::vector<DimFactors>* factors = nullptr;
  const Layout* layout = nullptr;     ///< operand: where it is now; result: the preference
  bool free = false;                  ///< operand: can be made anywhere
  std::vector<const Layout*> copies;  ///< operand: where else it is already
  double weight = 0;                  ///< result: how much the preference counts
  bool can_carry = false;             ///< operand: its pending sum may pass
  bool should_stay = false;  ///< operand: policy strict refuses to move it; whatever need not is better
};
struct NodeState {
  const FlatNode* node = nullptr;
  const Rule* rule = nullptr;
  std::vector<TermState> operands, results;
  std::vector<int> pending;  ///< sub_axes of partial sums that pass through (empty: they are combined first)
};

struct Strategy {
  Assignment assignment;
  std::vector<int> pending;            ///< passed through
  std::vector<const Layout*> in, out;  ///< layouts that follow
  double cost = 0;
  double moved = 0;  ///< the part of the cost that is transfers
  double peak = 0;   ///< the part that is memory which a device does not have, for transfers or for the node
  double ways =
      0;  ///< so many assignments that they were not compared: the first that fits is taken; 0: the cheapest is
};

class StrategySearch {
 public:
  StrategySearch(const SubAxes& sub_axes, const CostModel& model) : sub_axes_(sub_axes), model_(model) {}
  Strategy cheapest(const NodeState& s);
  /// The layouts that follow from an assignment; false when it cannot be placed.
  bool complete(const NodeState& s, Strategy& d) const;

 private:
  void add_cost(const NodeState& s, Strategy& d);
  /// What neighbours send: halos, carries of a scan.
  void add_neighbours(const NodeState& s, Strategy& d) const;
  /// From the nearest place where the operand is.
  MoveCost fetch(const TermState& t, const Layout* to);
  MoveCost transfer(const Layout* from, const Layout* to, const Type& t);
  Assignment merged(const NodeState& s) const;
  std::vector<int> present_sub_axes(const NodeState& s) const;
  std::vector<int> idle_sub_axes(const NodeState& s, const std::vector<int>& present) const;
  void order_sub_axes(const NodeState& s, Assignment& a) const;
  /// The one factor on which every tensor that has the sub_axis puts it; none when they differ.
  std::optional<std::size_t> agreed_factor(const NodeState& s, int sub_axis) const;
  /// The cheapest of all ways to deal `sub_axes` to factors that moves at most `most`.
  void enumerate(const NodeState& s, const std::vector<int>& sub_axes, double most, Strategy& best);
  void consider(const NodeState& s, Assignment a, double most, Strategy& best);

  const SubAxes& sub_axes_;
  const CostModel& model_;
  std::map<std::tuple<const Layout*, const Layout*, std::vector<std::int64_t>, std::size_t>, MoveCost>
      transfers_;
};

}  // namespace shardarray
