// Where pending nodes are placed: what each would be bound to if it were computed alone, and what has to move before.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "base/pointer_table.h"
#include "execute/launch.h"
#include "graph/op.h"

namespace shardarray {

/// Where a value is placed if only it and what it needs is computed.
struct Place {
  enum class Kind : std::uint8_t {
    open,   ///< nothing decides: the default device
    free,   ///< where all its leaves are, none of them bound
    mixed,  ///< unbound leaves at several places: the default device
    bound,  ///< committed, or on many devices
  } kind = Kind::open;
  const DeviceOrder* order = nullptr;  ///< of free and bound ones
  double weight = 0;                   ///< elements of the largest value that binds it, whose order it gets
};

/// Operands that have to move from other devices before the program that needs them can run: that of a constraint; a cotangent that
/// returns to its primal's devices (Trait::beside); those of a pmap's call.
struct Move {
  Array of;                           ///< output 0 of the node that needs it
  std::vector<Array> operands;        ///< absent: not needed for the move
  const DeviceOrder* home = nullptr;  ///< of a pmap's call: its devices
};

/// Places of the nodes to compute; add them operands first.
class Places {
 public:
  explicit Places(std::size_t expected) : number_(expected) {}
  /// Returns what `n` needs moved, if anything.
  std::optional<Move> add(Node* n);
  /// The place of an added node, or of an evaluated output.
  Place of(const Array& a);
  const Place& of(const Node* n) { return places_[static_cast<std::size_t>(number_[n])]; }

 private:
  PointerTable number_;
  std::vector<Place> places_;
};

/// Whether its operands may have to move from other devices.
bool may_move(const Node* n);

/// Whether all are obviously in one place: no leaf is bound, and all leaves are on the same devices.
bool lie_together(std::span<Node* const> nodes);

/// Of the `nodes` (operands first) that are `held` from outside: those that share the place of the first one and depend on no held node
/// that is placed elsewhere.
std::vector<Array> first_place(std::span<Node* const> nodes, const std::vector<bool>& held);

}  // namespace shardarray
