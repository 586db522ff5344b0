// The values of a partition while it grows, and copies of them in other places.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compile/passes.h"
#include "compile/reshards.h"

namespace shardarray {

/// A text that is made where somebody asks for it.
using Text = std::function<std::string()>;
/// Why something moves.
struct MoveReason {
  const Text& text;            ///< asked for where something moves
  const FlatNode& by;          ///< what needs it; without an op: the end of the program
  detail::RecordedLine where;  ///< its line
  bool asked;                  ///< the program asks for it, so that policy strict does not refuse it
  /// What else `by` could be given, as lines; null: nothing else. Asked for where policy strict refuses.
  const Text* others = nullptr;
  std::optional<std::size_t> operand = {};  ///< of `by`; none: `by` is a constraint or the end of the program
  const FlatNode* maker = nullptr;          ///< of that operand
};

class LocalValues {
 public:
  LocalValues(Partition& p, const CompileInput& in, Reshards& reshards)
      : p_(p), in_(in), reshards_(reshards) {}
  /// A new local value; `origin`: the one that it is a copy of, in another place.
  int add(const Type& t, const Layout* l, int step, int origin = -1);
  /// All places of the value, `part` included.
  const std::vector<int>& copies_of(int part) const;
  /// The value in layout `to`: as it is, or from its nearest copy.
  int move(int part, const Layout* to, const MoveReason& why);

 private:
  // The copy in layout `to`; -1: there is none.
  int copy_at(int part, const Layout* to) const;
  // One step of a move of `operand`.
  int transfer_to(int part, const Layout* to, const MoveReason& why, int operand);
  void tell_gap(std::size_t first, const Layout& from, const Layout& to, const Type& t);

  Partition& p_;
  const CompileInput& in_;
  Reshards& reshards_;
  std::vector<int> origin_;  ///< local value -> the one that it is a copy of (itself: an original)
  std::vector<std::vector<int>> copies_;  ///< original -> its copies, itself included
};

}  // namespace shardarray
