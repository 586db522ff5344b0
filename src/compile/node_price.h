// What one node costs under an assignment of sub-axes to its factors.
#pragma once
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

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
  /// The same of factors cut into so many parts each.
  double work(const std::vector<std::int64_t>& parts) const;

 private:
  // One operand or result.
  struct Placed {
    std::optional<SubAxisDims> dims;  // none: it cannot be placed
    std::vector<int> summed;          // sub-axes of its partial sums
    Reducer reducer = Reducer::none;
    MoveCost cost;
    bool has_cost = true;            // else it is at least this, and found when that might be the best
    const Layout* layout = nullptr;  // made when it is asked for
  };
  using Known = std::unordered_map<std::string, Placed>;  // by what the assignment says of its factors
  // Where something is.
  struct Place {
    SubAxisDims dims;
    std::vector<int> summed;
  };

  bool sums_fit(const Assignment& a) const;
  void add_to_key(const Assignment& a, std::size_t factor);
  void start_key(const Assignment& a, const TermState& t);
  Placed& operand(const Assignment& a, std::size_t k);
  Placed& result(const Assignment& a, std::size_t k);
  const Layout* layout(Placed& p) const;
  Place place_of(const Layout& l) const;
  std::optional<MoveCost> even_cost(const Place& from, const SubAxisDims& to, const Type& t) const;
  std::optional<MoveCost> even_fetch(std::size_t k, const Placed& to) const;
  MoveCost fetch(std::size_t k, Placed& to);
  MoveCost to_preference(const TermState& t, const Layout* made);
  MoveCost least_of_sums(const Place& from, const Type& t) const;
  bool is_there(std::size_t k) const;
  MoveCost total() const;
  std::int64_t bytes_at_once(const Strategy& d) const;

  const NodeState& s_;
  const SubAxes& sub_axes_;
  Reshards& reshards_;
  const CostModel& model_;
  std::vector<Known> operands_, results_;
  std::vector<std::vector<Place>> sources_;  // of each operand; none where what it costs takes layouts
  std::vector<Place> preferences_;           // of each result
  const std::vector<std::vector<const Layout*>>* left_out_ = nullptr;
  std::string key_;
  std::vector<Placed*> in_, out_;  // of the candidate
  std::vector<bool> is_there_;     // by operand, see is_there()
};

}  // namespace shardarray
