// Iteration: a graph that is called again and again, each time on what the call before gave (Form::iterate).
//
// The graph takes constants, carries and elements, and gives carries and elements. The op takes the constants, the first
// carries and sequences (elements along dimension 0), and gives the last carries and sequences.
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
  std::int64_t length = 1;  ///< how often: 1 or more
  bool reverse = false;     ///< from the last elements of the sequences to the first

  static Iteration of(const Attrs& a);
  Attrs attrs() const;
  /// The operand that is the first sequence.
  std::size_t first_element() const { return constants + carries; }
  /// Whether a call gives carry k as it found it.
  bool keeps(std::size_t k) const { return body->out[k].node() == body->in[constants + k].node(); }
};

/// Of elements of type t.
Type sequence_of(Type t, std::int64_t length);
/// Of the sequence of type t.
Type element_of(Type t);

/// Which results of `g` depend on an input of which this is true.
std::vector<bool> depending(const Graph& g, const std::vector<bool>& from);

/// An iteration with fewer operands or results.
struct Trimmed {
  Iteration iteration;
  /// Those that are left, by their old numbers, in their new order.
  std::vector<std::size_t> operands, results;
  /// Result -> the operand that it is: of a carry that never changes, of elements that are handed through; -1: of others.
  std::vector<int> forwarded;
};
/// Without what no result in `used` needs. A carry that never changes becomes a constant.
Trimmed trimmed(const Iteration& whole, const std::vector<bool>& used);

/// Records it, trimmed; its results, of those that are not used only what needs no call. In ops/.
std::vector<Array> record_iteration(const Iteration& it, std::span<const Array> operands,
                                    const std::vector<bool>& used);
/// All are used.
std::vector<Array> record_iteration(const Iteration& it, std::span<const Array> operands);

}  // namespace shardarray
