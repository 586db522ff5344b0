// Which assignments of sub-axes to factors the search compares for one node.
#pragma once
#include <optional>

#include "compile/node_price.h"

namespace shardarray {

/// All of them if they are few. Otherwise sub-axes that are adjacent wherever they are used form runs; each run is dealt as one piece, then
/// split in all ways. If that is still too many, runs are dealt as one piece (two at a time if need be), then in halves around the best.
class Dealing {
 public:
  Dealing(NodePrice& price, const NodeState& s, const SubAxes& sub_axes, Freedom freedom);
  /// Sub-axes that shard an operand, or that a result's preference has.
  const SubAxisList& present() const { return present_; }
  /// Also those that no tensor uses, if they could divide the work, and what moves for it, instead of repeating it: for products with an
  /// operand that is sharded, or a partial sum, of which a part is cheaper to bring.
  SubAxisList present_and_idle() const { return present_and_idle(freedom_); }
  /// Whether there are ways that Freedom::none lacks.
  bool is_freer() const;
  /// Deals `sub_axes` to factors the cheapest way that moves at most `most`, if that beats `best`.
  void deal(const SubAxisList& sub_axes, double most, Strategy& best);

 private:
  static constexpr std::size_t not_there = static_cast<std::size_t>(-1);
  // Adjacent sub-axes, dealt together.
  struct Unit {
    SubAxisList sub_axes;
    std::vector<std::size_t> factors;  // candidates
    std::vector<std::vector<std::size_t>>
        ways;  // by way and sub-axis: the factor it goes to; not_there: none
  };
  struct Term {
    SubAxisDims dims;
    Assignment factors;                            // what each can hold of them
    std::vector<std::vector<std::size_t>> places;  // by factor and sub-axis: its place there; not_there
  };
  std::vector<Unit> single_units(const SubAxisList& sub_axes, const Strategy& best) const;
  // Groups them into runs of adjacent sub-axes, without ways.
  std::vector<Unit> runs_of(const std::vector<Unit>& single, bool of_one_size) const;
  // Tries all ways to deal `units`; the other sub-axes are as in `fixed`.
  void deal_units(const std::vector<const Unit*>& units, const Assignment& fixed, double most,
                  Strategy& best);
  // The same; the others are as in `best`.
  void deal_again(const std::vector<const Unit*>& units, double most, Strategy& best);
  void deal_pairs(const std::vector<Unit>& units, double most, Strategy& best);
  void deal_halves(const Unit& unit, double most, Strategy& best);
  SubAxisList present_and_idle(Freedom freedom) const;
  // The factor to which all tensors that have the sub-axis assign it; none if they differ or it may roam.
  std::optional<std::size_t> agreed_factor(int sub_axis, Freedom freedom) const;
  /// Orders the sub-axes of each factor as the results have them, or as the operands do.
  void order(Assignment& a, bool results_first) const;

  NodePrice& price_;
  const NodeState& s_;
  const SubAxes& sub_axes_;
  Freedom freedom_;
  std::vector<Term> results_, operands_;  // operands that are not free
  std::vector<SubAxisDims> places_;  // all current and preferred layouts; partial sums as one more dimension
  SubAxisList present_, summed_;     // summed: an operand is a partial sum over them, which the node combines
  std::vector<std::size_t> factors_;  // that may be sharded
};

}  // namespace shardarray
