// The cost of one node under an assignment of sub-axes to its factors.
#pragma once
#include <optional>
#include <unordered_map>
#include <vector>

#include "compile/reshards.h"
#include "compile/strategy.h"

namespace shardarray {

/// Bytes that the busiest device receives from neighbours once operands are in their layouts: halos, carries of a scan.
std::int64_t neighbours_bytes(const NodeState& s, const Strategy& d);

class NodePrice {
 public:
  NodePrice(const NodeState& s, SubAxisLayouts& layouts, Reshards& reshards);
  /// Takes an assignment, whose work is `computed`, as `best` if it is cheaper and moves at most `most`.
  void consider(const Assignment& a, double computed, double most, Strategy& best);
  /// From now on ignores strategies whose operands are in any of these layouts.
  void leave_out(const std::vector<std::vector<const Layout*>>& operands) { left_out_ = &operands; }
  /// The node unsharded, at any price.
  Strategy uncut();
  /// The cost of arithmetic on the busiest device.
  double work(const Assignment& a) const;
  /// The same for factors sharded into so many parts each.
  double work(const std::vector<std::int64_t>& parts) const;

 private:
  // One operand or result.
  struct Placed {
    SubAxisDims dims;
    SubAxisList summed;  // over which it is a partial sum
    Reducer reducer = Reducer::none;
    MoveCost cost;
    bool has_cost = true;  // else `cost` is a lower bound; it is computed if that might be the best
  };
  using KnownCosts = std::unordered_map<const Layout*, MoveCost>;
  // A layout by its sub-axes.
  struct Place {
    SubAxisDims dims;
    SubAxisList summed;
  };

  bool sums_fit(const Assignment& a) const;
  // Place one operand or result of the candidate; false if that is impossible.
  bool place_operand(const Assignment& a, std::size_t k);
  bool place_result(const Assignment& a, std::size_t k);
  const Layout* layout(const Placed& p) { return layouts_.of(p.dims, p.summed, p.reducer); }
  std::vector<const Layout*> layouts(const std::vector<Placed>& all);
  Place place_of(const Layout& l) const;
  std::optional<MoveCost> even_cost(const SubAxisDims& from, const SubAxisDims& to, const Type& t) const;
  std::optional<MoveCost> even_fetch(std::size_t k, const Placed& to) const;
  MoveCost operand_cost(std::size_t k, const Placed& p);
  MoveCost result_cost(std::size_t k, const Placed& p);
  MoveCost fetch(std::size_t k, const Layout* there);
  MoveCost to_preference(const TermState& t, const Layout* made);
  MoveCost least_of_sums(const Place& from, const Type& t) const;
  bool is_there(std::size_t k) const;
  MoveCost total() const;
  std::int64_t bytes_at_once(const Strategy& d) const;
  std::int64_t neighbours(const Strategy& d);

  const NodeState& s_;
  SubAxisLayouts& layouts_;
  const SubAxes& sub_axes_;
  Reshards& reshards_;
  const CostModel& model_;
  std::vector<KnownCosts> operand_costs_, result_costs_;
  std::vector<std::vector<Place>> sources_;  // of each operand; empty if its cost needs layouts
  std::vector<Place> preferences_;           // of each result
  const std::vector<std::vector<const Layout*>>* left_out_ = nullptr;
  std::vector<Placed> in_, out_;  // of the candidate
  std::vector<bool> is_there_;    // by operand, see is_there()
};

}  // namespace shardarray
