// Contraction: what a convolution comes down to. Sums of products of two arrays, each walked through by dimensions with distances
// of their own; where windows overlap, elements of the first array are met several times.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace shardarray {

/// Distances in elements; 0 in an array that does not have the dimension.
struct ContractionDim {
  std::int64_t size = 1, lhs = 0, rhs = 0, out = 0;
};
/// out[g, p, f] = sum over s of lhs[g, p, s] rhs[g, f, s], where each letter stands for several dimensions, the outermost first.
struct Contraction {
  std::vector<ContractionDim> groups, points, features, summed;

  /// As the params of a LibraryCall, and back.
  std::vector<std::int64_t> params() const;
  static Contraction of(std::span<const std::int64_t> params);
};
/// What they stand for together.
std::int64_t size_of(std::span<const ContractionDim> dims);
/// The products of all its sums.
double products_of(const Contraction& c);
/// Neighbours that one distance walks through become one; sizes of 1 go.
std::vector<ContractionDim> merged(std::span<const ContractionDim> dims);

/// How many products are one chain of multiply-adds: all of a sum up to 1024, else 256; the sums of several chains are added up in
/// order, and what is rounded off on the way is added at the end (scalar.h).
constexpr std::int64_t chain_of(std::int64_t products) {
  constexpr std::int64_t longest = 1024, block = 256;
  return products <= longest ? longest : block;
}

}  // namespace shardarray
