// Rule: the factors of an op. "ik,kj->ij" names each dimension's factor; from the factors follow the shape check, where the
// op may run, what must be communicated, how it is batched and what it costs.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph/node.h"

namespace shardarray {

enum class Role : std::uint8_t {
  pass,    // stays where it is
  reduce,  // combined away: cutting it leaves a partial result
  halo,    // neighbours' elements are needed: cut alike on both sides, boxes move
  scan,    // combined step by step: cutting it, every device needs the totals in front of its part
  whole,   // must not be cut
};

struct Factor {
  std::int64_t size = 1;
  Role role = Role::pass;
  Reducer reducer = Reducer::none;
  friend bool operator==(const Factor&, const Factor&) = default;
};
/// The factors of one dimension, most significant first. Several only where a reshape merges or splits.
using DimFactors = std::vector<int>;

struct Rule {
  std::vector<Factor> factors;
  std::vector<std::vector<DimFactors>> operands, results;

  bool has(Role role) const {
    return std::any_of(factors.begin(), factors.end(), [&](const Factor& f) { return f.role == role; });
  }
};

/// What an op's functions see of a node: recorded (Node) or in a compiler pass.
struct Call {
  const Op* op = nullptr;
  std::span<const Type> in;
  std::span<const Type> out;  ///< empty while the types are being inferred
  const Attrs* attrs = nullptr;
  /// Per operand: the float that all its elements are, where the program says which (a literal); else NaN. Empty: not looked at.
  std::span<const double> literals = {};
  bool summands_asked =
      false;  ///< of operands that the program wants as summands: products may round each of them
};

/// Every dimension a factor of its own, shared by all operands and results of that shape.
Rule pointwise_rule(const Call& c);
/// An einsum with one letter per dimension: a letter that is missing on the right is summed.
Rule einsum_rule(const Call& c, const std::string& letters);

/// Splits "ab,bc->ac".
struct Letters {
  std::vector<std::string> in;
  std::string out;
};
Letters split_letters(const std::string& letters);
/// The letters of a product of two operands: of both and the result; of the first and the result; of the second and the result;
/// of the sum.
struct DotLetters {
  std::string batch, m, n, k;
};
DotLetters dot_letters(const Letters& l);

}  // namespace shardarray
