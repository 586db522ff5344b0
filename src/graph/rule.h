// Rule: the factors of an op. "ik,kj->ij" names each dimension's factor. From them follow the shape check, where the op can run, what must
// be communicated, how it is batched and what it costs.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph/node.h"

namespace shardarray {

enum class Role : std::uint8_t {
  pass,    // needs no communication
  reduce,  // reduced: sharding it leaves a partial result
  halo,    // needs neighbouring elements: sharded alike on both sides, boxes are exchanged
  scan,    // a prefix scan: if sharded, every device needs the totals before its tile
  whole,   // must not be sharded
};

struct Factor {
  std::int64_t size = 1;
  Role role = Role::pass;
  Reducer reducer = Reducer::none;
  friend bool operator==(const Factor&, const Factor&) = default;
};
/// The factors of one dimension, most significant first. More than one only if a reshape merges or splits.
using DimFactors = std::vector<int>;

struct Rule {
  std::vector<Factor> factors;
  std::vector<std::vector<DimFactors>> operands, results;

  bool has(Role role) const {
    return std::any_of(factors.begin(), factors.end(), [&](const Factor& f) { return f.role == role; });
  }
};

/// An op's view of a node, recorded or in a compiler pass.
struct Call {
  const Op* op = nullptr;
  std::span<const Type> in;
  std::span<const Type> out;  ///< empty while types are inferred
  const Attrs* attrs = nullptr;
  /// Per operand: the value of all its elements if it is a float literal, else NaN. Empty: unknown.
  std::span<const double> literals = {};
  bool summands_asked =
      false;  ///< the program wants operands kept as summands: products may round each of them
};

/// One factor per dimension, shared by all operands and results of that shape.
Rule pointwise_rule(const Call& c);
/// An einsum with one letter per dimension: letters missing on the right are summed.
Rule einsum_rule(const Call& c, const std::string& letters);

/// Splits "ab,bc->ac".
struct Letters {
  std::vector<std::string> in;
  std::string out;
};
Letters split_letters(const std::string& letters);
/// The letters of a product of two operands: in both and the result; in the first and the result; in the second and the result; summed.
struct DotLetters {
  std::string batch, m, n, k;
};
DotLetters dot_letters(const Letters& l);

}  // namespace shardarray
