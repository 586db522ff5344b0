// How one node runs: which sub-axes shard which of its factors, chosen by cost.
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
  std::vector<const Layout*> copies;  ///< other layouts in which it exists
  std::vector<const Rule*> rules;  ///< of broadcasts that make the operand from it at its use, the last first
};
/// One operand or result, as the search sees it.
struct TermState {
  Type type;
  const std::vector<DimFactors>* factors = nullptr;
  const Layout* layout = nullptr;  ///< operand: where it is now; result: the preference
  bool free = false;               ///< operand: can be made anywhere
  TermSource source;               ///< operand that is not free
  double weight = 0;               ///< result: how much the preference counts
  bool can_carry = false;          ///< operand: its partial sum may pass through
  bool can_split = false;    ///< operand: not partial, it may be one summand beside those that pass through
  bool should_stay = false;  ///< operand: policy strict refuses to move it; any alternative is better
};
struct NodeState {
  const FlatNode* node = nullptr;
  const Rule* rule = nullptr;
  int kind = -1;  ///< see NodeFacts
  std::vector<TermState> operands, results;
  SubAxisList pending;    ///< of partial sums that pass through; empty: they are combined first
  bool is_asked = false;  ///< for a collective's operand: it is combined as the program says
};

/// Similar layers of a network are decided once.
StateKey key_of(const NodeState& s);

struct Strategy {
  Assignment assignment;
  SubAxisList pending;                 ///< passed through
  std::vector<const Layout*> in, out;  ///< resulting layouts
  double cost = 0;
  double moved = 0;  ///< the part of the cost that is transfers
  double peak = 0;   ///< the part for memory that a device does not have, for transfers or the node
  double narrowed =
      0;  ///< if only some assignments were compared (axes moved together, then parts of them): how many there are; else 0
};

class NodePrice;

/// What may move less for one node, but more, or less, for the whole program.
enum class Freedom : std::uint8_t {
  none,     // axes stay at the factor on which all tensors that have them agree, or are dropped
  roaming,  // axes of one tensor alone, or on a summed factor, may shard another one
  sharing,  // idle axes may share a sum and what moves for it; its parts are gathered then
};

class StrategySearch {
 public:
  /// `other`: one with Freedom::none, unless this is one.
  StrategySearch(SubAxisLayouts& layouts, Reshards& reshards, Freedom freedom, StrategySearch* other)
      : layouts_(layouts),
        sub_axes_(layouts.sub_axes()),
        reshards_(reshards),
        freedom_(freedom),
        other_(other) {}
  const Strategy& cheapest(const NodeState& s);
  /// Whether it decides everything that `other` has decided the same way.
  bool decides_as(const StrategySearch& other);
  SubAxisLayouts& layouts() { return layouts_; }
  Reshards& reshards() { return reshards_; }
  /// The cheapest whose operands have none of these layouts; none if there is no other.
  std::optional<Strategy> next(const NodeState& s, const std::vector<std::vector<const Layout*>>& but);
  /// The one `places` behind d, the cheapest; the last one if there are fewer.
  const Strategy& behind(const NodeState& s, const Strategy& d, std::size_t places);

 private:
  Strategy search(const NodeState& s);
  // The cheapest at these prices; infinite cost if there is none.
  Strategy search(const NodeState& s, NodePrice& price) const;
  // The assignment that follows from where operands are, without a search.
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
