// The values of a partition under construction, and their copies in other layouts.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compile/passes.h"
#include "compile/reshards.h"

namespace shardarray {

/// A text that is built on demand.
using Text = std::function<std::string()>;
/// Why something moves.
struct MoveReason {
  const Text& text;            ///< built if something moves
  const FlatNode& by;          ///< what needs it; without an op: the end of the program
  detail::RecordedLine where;  ///< its line
  bool asked;                  ///< the program asks for it, so policy strict allows it
  /// Alternatives for the operands of `by`, as lines; null: none. Built if policy strict refuses.
  const Text* others = nullptr;
  std::optional<std::size_t> operand = {};  ///< of `by`; none: `by` is a constraint or the end of the program
  const FlatNode* maker = nullptr;          ///< makes that operand
};

class LocalValues {
 public:
  LocalValues(Partition& p, const CompileInput& in, Reshards& reshards)
      : p_(p), in_(in), reshards_(reshards) {}
  /// A new local value; `origin`: the value that it is a copy of, in another layout.
  int add(const Type& t, const Layout* l, int step, int origin = -1);
  /// All copies of the value, `part` included.
  const std::vector<int>& copies_of(int part) const;
  /// The value in layout `to`: as it is, or moved from its nearest copy.
  int move(int part, const Layout* to, const MoveReason& why);

 private:
  // The copy in layout `to`, or -1.
  int copy_at(int part, const Layout* to) const;
  // One transfer of a move of `operand`.
  int transfer_to(int part, const Layout* to, const MoveReason& why, int operand);
  void tell_gap(std::size_t first, const Layout& from, const Layout& to, const Type& t);

  Partition& p_;
  const CompileInput& in_;
  Reshards& reshards_;
  std::vector<int> origin_;  ///< local value -> the one that it is a copy of (an original: itself)
  std::vector<std::vector<int>> copies_;  ///< original -> its copies, itself included
};

}  // namespace shardarray
