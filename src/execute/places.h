// Where pending nodes lie: what each would be bound to if it were computed alone, and what has to come over before.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "base/pointer_table.h"
#include "execute/launch.h"
#include "graph/op.h"

namespace shardarray {

/// Where a value lies when only it and what it needs is computed.
struct Place {
  enum class Kind : std::uint8_t {
    open,   ///< nothing says: the default device
    free,   ///< where all its leaves lie, none of them bound
    mixed,  ///< unbound leaves of several places: the default device
    bound,  ///< committed, or on many devices
  } kind = Kind::open;
  const DeviceOrder* order = nullptr;  ///< of free and bound ones
  double weight = 0;                   ///< elements of the largest of what binds it, whose order it gets
};

/// Something that has to come over from other devices before the program that needs it can run: the operand of a
/// constraint; the one of a cotangent's way back, beside the other; operands of a pmap's call.
struct Move {
  Array of;                           ///< output 0 of the node that needs it
  std::vector<Array> operands;        ///< absent: not needed for the move
  const DeviceOrder* home = nullptr;  ///< of a call
};

/// Places of nodes that are to be computed; they are added operands first.
class Places {
 public:
  explicit Places(std::size_t expected) : number_(expected) {}
  /// Returns what `n` needs moved, if anything.
  std::optional<Move> add(Node* n);
  /// Of a node that was added, or of an evaluated output.
  Place of(const Array& a);
  const Place& of(const Node* n) { return places_[static_cast<std::size_t>(number_[n])]; }

 private:
  PointerTable number_;
  std::vector<Place> places_;
};

/// Its operands may have to come over from other devices.
bool may_move(const Node* n);

/// Whether it is plain that all lie in one place: no leaf is bound, and all leaves lie together.
bool lie_together(std::span<Node* const> nodes);

/// Of `nodes` (operands first) those that are `held` by somebody outside: all that lie where the first of them lies and need
/// no other held one that lies elsewhere.
std::vector<Array> first_place(std::span<Node* const> nodes, const std::vector<bool>& held);

}  // namespace shardarray
