// Where one node runs: which sub_axes cut which of its factors, by cost.
#pragma once
#include <deque>
#include <optional>
#include <unordered_map>

#include "compile/assignment.h"
#include "compile/reshards.h"
#include "compile/state_key.h"
#include "compile/sub_axis_layouts.h"

namespace shardarray {

/// Where an operand comes from.
struct TermSource {
  Type type;
  const Layout* layout = nullptr;     ///< where it is now
  std::vector<const Layout*> copies;  ///< where else it is already
  std::vector<const Rule*>
      rules;  ///< of broadcasts that make the operand of it where that is needed, the last first
};
/// One operand or result as the decision sees it.
struct TermState {
  Type type;
  const std::vector<DimFactors>* factors = nullptr;
  const Layout* layout = nullptr;  ///< operand: where it is now; result: the preference
  bool free = false;               ///< operand: can be made anywhere
  TermSource source;               ///< operand that is not free
  double weight = 0;               ///< result: how much the preference counts
  bool can_carry = false;          ///< operand: its pending sum may pass
  bool can_split = false;          ///< operand: whole, it may be one summand beside those that pass
  bool should_stay = false;        ///< operand: policy strict refuses to move it; whatever need not is better
};
struct NodeState {
  const FlatNode* node = nullptr;
  const Rule* rule = nullptr;
  int kind = -1;  ///< see NodeFacts
  std::vector<TermState> operands, results;
  SubAxisList pending;    ///< of partial sums that pass through (empty: they are combined first)
  bool is_asked = false;  ///< a collective's operand: it is combined as the program says
};

/// Layers of a network that look alike are decided once.
StateKey key_of(const NodeState& s);

struct Strategy {
  Assignment assignment;
  SubAxisList pending;                 ///< passed through
  std::vector<const Layout*> in, out;  ///< layouts that follow
  double cost = 0;
  double moved = 0;  ///< the part of the cost that is transfers
  double peak = 0;   ///< the part that is memory which a device does not have, for transfers or for the node
  double narrowed =
      0;  ///< of so many assignments some were compared: axes moved together, then parts of them; 0: all that may differ were
};

class NodePrice;

/// What may move less in one node, and makes the whole program move more, or less.
enum class Freedom : std::uint8_t {
  none,     // axes stay at the factor on which all tensors agree that have them, or leave it
  roaming,  // those of one tensor alone, or whose factor is summed, may cut another one
  sharing,  // axes that cut nothing may share a sum and what moves for it; its parts are brought together then
};

class StrategySearch {
 public:
  /// `other`: one with Freedom::none, where this is not.
  StrategySearch(SubAxisLayouts& layouts, Reshards& reshards, Freedom freedom, StrategySearch* other)
      : layouts_(layouts),
        sub_axes_(layouts.sub_axes()),
        reshards_(reshards),
        freedom_(freedom),
        other_(other) {}
  const Strategy& cheapest(const NodeState& s);
  /// Whether it decides all that `other` has decided the same way.
  bool decides_as(const StrategySearch& other);
  SubAxisLayouts& layouts() { return layouts_; }
  Reshards& reshards() { return reshards_; }
  /// The cheapest one whose operands lie in none of these ways; none where there is no other.
  std::optional<Strategy> next(const NodeState& s, const std::vector<std::vector<const Layout*>>& but);
  /// The one that is so many places behind d, which is the cheapest, as far as there are others.
  const Strategy& behind(const NodeState& s, const Strategy& d, std::size_t places);

 private:
  Strategy search(const NodeState& s);
  // The cheapest at these prices; its cost is infinite where there is none.
  Strategy search(const NodeState& s, NodePrice& price) const;
  // Where its operands are already, without a search.
  Assignment merged(const NodeState& s) const;

  SubAxisLayouts& layouts_;
  const SubAxes& sub_axes_;
  Reshards& reshards_;
  Freedom freedom_;
  StrategySearch* other_;
  struct Decided {
    NodeState state;
    Strategy strategy;
  };
  std::unordered_map<StateKey, Decided, StateHash> known_;
  std::unordered_map<StateKey, std::deque<Strategy>, StateHash> behind_;
};

}  // namespace shardarray
