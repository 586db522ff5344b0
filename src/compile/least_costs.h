// What ways to deal sub-axes to factors cost at least: so that most of them need not be priced one by one.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "compile/node_price.h"

namespace shardarray {

/// Sub-axes that go to one factor, or to none.
struct DealtUnit {
  std::vector<int> sub_axes;
  std::vector<std::size_t> factors;
};

/// An operand or a result costs what the sub-axes of its own factors say, and there are few ways to choose these: each is priced once.
/// What neighbours send is left out, and operands that may be the same as others.
class LeastCosts {
 public:
  /// `fixed`: the sub-axes that are not dealt.
  LeastCosts(NodePrice& price, const NodeState& s, const SubAxes& sub_axes,
             const std::vector<const DealtUnit*>& units, const Assignment& fixed);
  /// Whether the way that gives unit u to its factor number choice[u] (one too many: to none) may cost less. `order`: which one of two
  /// orders sub-axes of one factor have in `assignment`, which is asked for what is not known yet.
  template <class Made>
  bool may_be_below(double cost, const std::vector<std::size_t>& choice, std::size_t order,
                    const Made& assignment);

 private:
  static constexpr double unknown = -1;
  struct Term {
    std::size_t number;
    bool is_result, may_be_free;
    std::vector<std::vector<std::uint32_t>>
        places;                                // by unit and choice, what is added to the place in `costs`
    std::array<std::vector<double>, 2> costs;  // by order; or unknown
  };

  NodePrice& price_;
  const std::vector<const DealtUnit*>& units_;
  std::vector<std::int64_t> fixed_tiles_, unit_tiles_, tiles_;  // by factor; by unit; of a way
  std::vector<Term> terms_;
};

template <class Made>
bool LeastCosts::may_be_below(double cost, const std::vector<std::size_t>& choice, std::size_t order,
                              const Made& assignment) {
  // Sums in another order may be a little larger.
  const double most = cost + 1e-6 + 1e-9 * std::abs(cost);
  tiles_ = fixed_tiles_;
  for (std::size_t u = 0; u < units_.size(); u++)
    if (choice[u] < units_[u]->factors.size()) tiles_[units_[u]->factors[choice[u]]] *= unit_tiles_[u];
  double least = price_.work(tiles_);
  for (Term& t : terms_) {
    if (!(least < most)) return false;
    if (t.may_be_free) continue;
    std::uint32_t place = 0;
    for (std::size_t u = 0; u < units_.size(); u++) place += t.places[u][choice[u]];
    double& known = t.costs[order][place];
    if (known == unknown)
      known = t.is_result ? price_.result_cost(assignment(), t.number)
                          : price_.operand_cost(assignment(), t.number);
    least += known;
  }
  return least < most;
}

}  // namespace shardarray
