// Iteration: a graph that is called repeatedly on the results of its previous call (Form::iterate); JAX's scan.
//
// The graph takes constants, carries and elements, and returns carries and elements. The op takes the constants, the initial carries and
// sequences (of elements along dimension 0), and returns the final carries and sequences.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace shardarray {

struct Iteration {
  std::shared_ptr<const Graph> body;
  std::size_t constants = 0, carries = 0;
  std::int64_t length = 1;  ///< number of calls, at least 1
  bool reverse = false;     ///< from the last element to the first

  static Iteration of(const Attrs& a);
  Attrs attrs() const;
  /// The operand that is the first sequence.
  std::size_t first_element() const { return constants + carries; }
  /// Whether the body returns carry k unchanged.
  bool keeps(std::size_t k) const { return body->out[k].node() == body->in[constants + k].node(); }
};

/// The sequence type for elements of type t.
Type sequence_of(Type t, std::int64_t length);
/// The element type of a sequence of type t.
Type element_of(Type t);

/// Which results of `g` depend on an input marked in `from`.
std::vector<bool> depending(const Graph& g, const std::vector<bool>& from);

/// An iteration without unneeded operands and results.
struct Trimmed {
  Iteration iteration;
  /// The remaining ones, by their old numbers, in their new order.
  std::vector<std::size_t> operands, results;
  /// Result -> the operand that it equals (a carry that never changes, or elements that are passed through), or -1.
  std::vector<int> forwarded;
};
/// Removes what no result in `used` needs. A carry that never changes becomes a constant.
Trimmed trimmed(const Iteration& whole, const std::vector<bool>& used);

/// Records it, trimmed; returns its results. Unused ones are present only if they need no call. In ops/.
std::vector<Array> record_iteration(const Iteration& it, std::span<const Array> operands,
                                    const std::vector<bool>& used);
/// The same, with all results used.
std::vector<Array> record_iteration(const Iteration& it, std::span<const Array> operands);

}  // namespace shardarray
