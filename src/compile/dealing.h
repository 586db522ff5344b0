// Which assignments of sub-axes to factors a search compares for one node.
#pragma once
#include <optional>

#include "compile/node_price.h"

namespace shardarray {

/// All of them where they are few. Of sub-axes that stand side by side wherever they are used, neighbours go together: each such run is
/// dealt in one piece, then in all ways to split it. Where even those are too many, runs go in one piece, a pair of them at a time if need
/// be, and then in halves around the best.
class Dealing {
 public:
  Dealing(NodePrice& price, const NodeState& s, const SubAxes& sub_axes, Freedom freedom);
  /// Sub-axes that cut an operand or that a result prefers.
  const SubAxisList& present() const { return present_; }
  /// With those that no tensor uses, which could take a part of the work, and of what is moved then, instead of repeating it: of
  /// products where an operand is cut, or is in summands, of which a part is less to bring.
  SubAxisList present_and_idle() const { return present_and_idle(freedom_); }
  /// Whether there are ways that Freedom::none has not.
  bool is_freer() const;
  /// The cheapest way to deal `sub_axes` to factors that moves at most `most`.
  void deal(const SubAxisList& sub_axes, double most, Strategy& best);

 private:
  static constexpr std::size_t not_there = static_cast<std::size_t>(-1);
  // Sub-axes that are dealt side by side.
  struct Unit {
    SubAxisList sub_axes;
    std::vector<std::size_t> factors;  // where they may go
    std::vector<std::vector<std::size_t>>
        ways;  // by way and sub-axis: to which factor it goes; not_there: to none
  };
  struct Term {
    SubAxisDims dims;
    Assignment factors;                            // what each can hold of them
    std::vector<std::vector<std::size_t>> places;  // by factor and sub-axis: which one it is there; not_there
  };
  std::vector<Unit> single_units(const SubAxisList& sub_axes, const Strategy& best) const;
  // What stands side by side of them, without ways.
  std::vector<Unit> runs_of(const std::vector<Unit>& single, bool of_one_size) const;
  // All ways to deal `units`, the other sub-axes as in `fixed`.
  void deal_units(const std::vector<const Unit*>& units, const Assignment& fixed, double most,
                  Strategy& best);
  // The same with the other sub-axes as in `best`.
  void deal_again(const std::vector<const Unit*>& units, double most, Strategy& best);
  void deal_pairs(const std::vector<Unit>& units, double most, Strategy& best);
  void deal_halves(const Unit& unit, double most, Strategy& best);
  SubAxisList present_and_idle(Freedom freedom) const;
  // The one factor on which every tensor that has the sub-axis puts it; none when they differ, or it may roam.
  std::optional<std::size_t> agreed_factor(int sub_axis, Freedom freedom) const;
  /// As the results have their sub-axes, or as the operands have them.
  void order(Assignment& a, bool results_first) const;

  NodePrice& price_;
  const NodeState& s_;
  const SubAxes& sub_axes_;
  Freedom freedom_;
  std::vector<Term> results_, operands_;  // operands that are not free
  std::vector<SubAxisDims> places_;   // where anything is or should be, partial sums as one dimension more
  SubAxisList present_, summed_;      // summed: over which an operand is in summands that the node adds up
  std::vector<std::size_t> factors_;  // that may be cut
};

}  // namespace shardarray
