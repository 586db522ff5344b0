// Calls that depend on values: one of several graphs (Form::choose), or a graph while another one holds (Form::repeat).
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace shardarray {

/// One of `branches`, which have the same operand and result types. The op's operands are the branch number, an int32 scalar in range, then
/// those of the branches.
struct Choice {
  std::vector<std::shared_ptr<const Graph>> branches;

  static Choice of(const Attrs& a);
  Attrs attrs() const;
};
/// Records it with only the operands that the branches need. In ops/.
std::vector<Array> record_choice(Choice c, const Array& index, std::span<const Array> operands);

/// `body` while `condition` holds. The op's operands are the condition's constants, the body's constants and the initial carries; its
/// results are the final carries. Both graphs take their constants, then the carries. The condition returns a bool scalar, the body the
/// carries.
struct Repetition {
  std::shared_ptr<const Graph> condition, body;
  std::size_t asked = 0, constants = 0;  ///< number of constants: of the condition, of the body

  static Repetition of(const Attrs& a);
  Attrs attrs() const;
  /// The operand that is the first initial carry.
  std::size_t first_carry() const { return asked + constants; }
  std::size_t carries() const { return body->out.size(); }
};
/// Records it with only the constants that are needed. In ops/.
std::vector<Array> record_repetition(Repetition r, std::span<const Array> operands);

/// Which inputs of `g` its results depend on.
std::vector<bool> needed_inputs(const Graph& g);

}  // namespace shardarray
