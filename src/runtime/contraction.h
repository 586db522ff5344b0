// Contraction: what a convolution reduces to: sums of products of two arrays, each traversed with its own strides; if windows overlap,
// elements of the first array are read several times.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace shardarray {

/// Strides in elements; 0 for an array without this dimension.
struct ContractionDim {
  std::int64_t size = 1, lhs = 0, rhs = 0, out = 0;
};
/// out[g, p, f] = sum over s of lhs[g, p, s] rhs[g, f, s], where each letter stands for several dimensions, outermost first.
struct Contraction {
  std::vector<ContractionDim> groups, points, features, summed;

  /// Conversion to the params of a LibraryCall, and back.
  std::vector<std::int64_t> params() const;
  static Contraction of(std::span<const std::int64_t> params);
};
/// Product of the sizes.
std::int64_t size_of(std::span<const ContractionDim> dims);
/// Total number of multiplications.
double products_of(const Contraction& c);
/// Drops sizes of 1 and merges neighbours that one stride traverses.
std::vector<ContractionDim> merged(std::span<const ContractionDim> dims);

/// How many products form one chain of multiply-adds: the whole sum up to 1024, else 256; the chains' sums are added in order, with their
/// rounding errors added at the end (scalar.h).
constexpr std::int64_t chain_of(std::int64_t products) {
  constexpr std::int64_t longest = 1024, block = 256;
  return products <= longest ? longest : block;
}

}  // namespace shardarray
