// Calls that depend on values: one of several graphs (Form::choose), a graph while another says so (Form::repeat).
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace shardarray {

/// One of `branches`, which take the same operands and give results of the same types. The op takes the number of the branch, an int32
/// scalar in range, then these operands.
struct Choice {
  std::vector<std::shared_ptr<const Graph>> branches;

  static Choice of(const Attrs& a);
  Attrs attrs() const;
};
/// Records it, with the operands that a branch needs. In ops/.
std::vector<Array> record_choice(Choice c, const Array& index, std::span<const Array> operands);

/// `body` while `condition` holds. The op takes the condition's constants, the body's, and the first carries, and gives the last ones;
/// both graphs take their constants, then carries. The condition gives a bool scalar, the body carries.
struct Repetition {
  std::shared_ptr<const Graph> condition, body;
  std::size_t asked = 0, constants = 0;  ///< constants of the condition; of the body

  static Repetition of(const Attrs& a);
  Attrs attrs() const;
  /// The operand that is the first carry.
  std::size_t first_carry() const { return asked + constants; }
  std::size_t carries() const { return body->out.size(); }
};
/// Records it, with the constants that are needed. In ops/.
std::vector<Array> record_repetition(Repetition r, std::span<const Array> operands);

/// Which inputs of `g` its results depend on.
std::vector<bool> needed_inputs(const Graph& g);

}  // namespace shardarray
