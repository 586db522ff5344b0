// What one node costs under an assignment of sub-axes to its factors.
#pragma once
#include <string>
#include <unordered_map>

#include "compile/reshards.h"
#include "compile/strategy.h"

namespace shardarray {

/// Bytes that the busiest device receives from neighbours where its operands lie as they should: halos, carries of a scan.
std::int64_t neighbours_bytes(const NodeState& s, const Strategy& d);

class NodePrice {
 public:
  NodePrice(const NodeState& s, const SubAxes& sub_axes, Reshards& reshards);
  /// Takes an assignment for `best` that is cheaper and moves at most `most`.
  void consider(const Assignment& a, double most, Strategy& best);
  /// From now on only strategies whose operands lie in none of these ways count.
  void leave_out(const std::vector<std::vector<const Layout*>>& operands) { left_out_ = &operands; }
  /// The node uncut, at any price.
  Strategy uncut();
  /// Arithmetic on the busiest device.
  double work(const Assignment& a) const;

 private:
  // One operand or result: the layout that follows (null: it cannot be placed) and what that costs.
  struct Placed {
    const Layout* layout = nullptr;
    MoveCost cost;
  };
  using Known = std::unordered_map<std::string, Placed>;  // by what the assignment says of its factors

  bool sums_fit(const Assignment& a) const;
  void add_to_key(const Assignment& a, std::size_t factor);
  void start_key(const Assignment& a, const TermState& t);
  const Placed& operand(const Assignment& a, std::size_t k);
  const Placed& result(const Assignment& a, std::size_t k);
  MoveCost fetch(const TermSource& s, const Layout* to);
  MoveCost to_preference(const TermState& t, const Layout* made);
  bool is_there(const std::vector<const Layout*>& in, std::size_t k) const;
  std::int64_t bytes_at_once(const Strategy& d) const;

  const NodeState& s_;
  const SubAxes& sub_axes_;
  Reshards& reshards_;
  const CostModel& model_;
  std::vector<Known> operands_, results_;
  const std::vector<std::vector<const Layout*>>* left_out_ = nullptr;
  std::string key_;
  std::vector<const Layout*> in_, out_;  // of the candidate
};

}  // namespace shardarray
