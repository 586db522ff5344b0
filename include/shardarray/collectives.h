// Collectives over the positions of a mapped axis, addressed by name. They mean the same inside vmap, pmap and shard_map: position p of
// an axis of size n has its own value x_p. All functions take an array or a tree of arrays (leaf by leaf). Several names,
// `psum(x, {"i", "j"})`, form one axis of the product's size, the first name most significant.
//
// `groups` partitions the axis: lists of positions, each position occurring exactly once; positions communicate only within their list,
// in its order. Reductions allow groups of different sizes, everything else requires equal ones; single axes only.
//
// Results have the shape and dtype of x unless stated otherwise. All throw TraceError for a name that is not in scope, Error for no name,
// a repeated one, or invalid groups or permutations, ShapeError for axes and sizes that do not fit. Derivatives are those of classic JAX:
// the transpose of psum is psum of the cotangents.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "shardarray/flag.h"
#include "shardarray/sharding.h"
#include "shardarray/tree.h"

namespace shardarray {

/// The axes of a collective: `"i"`, `{"i", "j"}` or `axes("i", "j")`.
struct SHARDARRAY_API NamedAxes {
  NamedAxes(const char* name) : names{name} {}
  NamedAxes(std::string name) : names{std::move(name)} {}
  NamedAxes(std::initializer_list<std::string> list) : names(list) {}
  NamedAxes(AxisNames list) : names(std::move(list.names)) {}
  std::vector<std::string> names;  ///< the first is the most significant
};
/// Lists of positions, see above.
using Groups = std::vector<std::vector<int>>;

/// Options of psum, pmean, pmax, pmin and pswapaxes; then those of all_gather, psum_scatter and all_to_all.
struct SHARDARRAY_API GroupOptions {
  Groups groups = {};  ///< empty: the full axis
};
struct SHARDARRAY_API AllGatherOptions {
  int axis = 0;        ///< of the result; negative counts from its end
  Flag tiled = false;  ///< concatenate along an existing dimension instead of stacking along a new one
  Groups groups = {};  ///< of equal size; empty: the full axis
};
struct SHARDARRAY_API PsumScatterOptions {
  int axis = 0;        ///< the dimension to scatter
  Flag tiled = false;  ///< split the dimension; otherwise it must have the axis' size and is removed
  Groups groups = {};  ///< of equal size; empty: the full axis
};
struct SHARDARRAY_API AllToAllOptions {
  int split_axis = 0;   ///< the dimension whose parts are sent
  int concat_axis = 0;  ///< where received parts go; unless tiled, counted after split_axis is removed
  Flag tiled = false;   ///< split_axis is divided; otherwise it must have the axis' size and is removed
  Groups groups = {};   ///< of equal size; empty: the full axis
};
/// Pairs (source, destination) of positions.
using Permutation = std::vector<std::pair<int, int>>;
/// The permutation that sends from each of n positions to the one `shift` further, cyclically: ring(4) is {0, 1}, {1, 2}, {2, 3}, {3, 0},
/// and `ring(n, -1)` its opposite. For the size of a map, use `axis_size(axis)`. Throws Error for n < 1.
///
///     sa::ppermute(x, "i", sa::ring(sa::axis_size("i")));
[[nodiscard]] SHARDARRAY_API Permutation ring(std::int64_t n, std::int64_t shift = 1,
                                              Where w = Where::here());

/// The number of positions along all axes together: for shapes and scaling.
[[nodiscard]] SHARDARRAY_API std::int64_t axis_size(const NamedAxes& axis, Where w = Where::here());
/// This position along the axis: int32 scalar, from 0.
[[nodiscard]] SHARDARRAY_API Array axis_index(const NamedAxes& axis, Where w = Where::here());

/// The sum over all positions (of a group), the same for each; bool is summed as int32, other integers keep their dtype and wrap. psum of
/// a literal is a literal: psum(1, "i") is the number of positions. For groups of different sizes that is the size of the first group at
/// all positions, as in JAX.
[[nodiscard]] SHARDARRAY_API Array psum(const Array& x, const NamedAxes& axis, const GroupOptions& o = {},
                                        Where w = Where::here());
/// psum(x) / psum(1), so not the mean for groups of different sizes. Floating: float32 for bool and integers (float64 for 64-bit ones).
[[nodiscard]] SHARDARRAY_API Array pmean(const Array& x, const NamedAxes& axis, const GroupOptions& o = {},
                                         Where w = Where::here());
/// The maximum over all positions; logical or for bools. Not differentiable: Error.
[[nodiscard]] SHARDARRAY_API Array pmax(const Array& x, const NamedAxes& axis, const GroupOptions& o = {},
                                        Where w = Where::here());
/// The minimum over all positions; logical and for bools. Not differentiable: Error.
[[nodiscard]] SHARDARRAY_API Array pmin(const Array& x, const NamedAxes& axis, const GroupOptions& o = {},
                                        Where w = Where::here());
/// Receives x from the source whose destination is this position; zeros if there is none. Over several axes, positions follow the
/// devices, the outermost map most significant, whatever the order of the names. Throws Error for a position out of range, and for one
/// that is repeated as a source or as a destination.
[[nodiscard]] SHARDARRAY_API Array ppermute(const Array& x, const NamedAxes& axis, const Permutation& perm,
                                            Where w = Where::here());
/// x of position perm[p]. Throws Error unless perm is a permutation of all positions.
[[nodiscard]] SHARDARRAY_API Array pshuffle(const Array& x, const NamedAxes& axis,
                                            const std::vector<int>& perm, Where w = Where::here());
/// x of position `source`, at all positions. Throws Error for a position out of range.
[[nodiscard]] SHARDARRAY_API Array pbroadcast(const Array& x, const NamedAxes& axis, int source,
                                              Where w = Where::here());
/// all_to_all with split_axis == concat_axis == dim.
[[nodiscard]] SHARDARRAY_API Array pswapaxes(const Array& x, const NamedAxes& axis, int dim,
                                             const GroupOptions& o = {}, Where w = Where::here());
/// All n values, stacked ([..] -> [.., n, ..], n at `axis`) or, if tiled, concatenated ([.., d, ..] -> [.., n d, ..]) in order of
/// position.
[[nodiscard]] SHARDARRAY_API Array all_gather(const Array& x, const NamedAxes& axis,
                                              const AllGatherOptions& o = {}, Where w = Where::here());
/// Sums over all n positions; position p receives part p: [.., n, ..] -> [..] or, if tiled, [.., d, ..] -> [.., d / n, ..]. Dtypes as for
/// psum. Throws ShapeError if the dimension's size is not n or, if tiled, not a multiple of n.
[[nodiscard]] SHARDARRAY_API Array psum_scatter(const Array& x, const NamedAxes& axis,
                                                const PsumScatterOptions& o = {}, Where w = Where::here());
/// Position p receives part p of every position's value: split_axis is removed and the n parts are stacked along concat_axis; if tiled,
/// the former is divided by n, the latter multiplied. Throws as psum_scatter.
[[nodiscard]] SHARDARRAY_API Array all_to_all(const Array& x, const NamedAxes& axis,
                                              const AllToAllOptions& o = {}, Where w = Where::here());

namespace detail {
template <class T>
concept NoLeaf = !std::convertible_to<const T&, Array>;
}  // namespace detail
/// The same for every array of a tree.
template <detail::NoLeaf T>
[[nodiscard]] T psum(const T& tree, const NamedAxes& axis, const GroupOptions& o = {},
                     Where w = Where::here()) {
  return tree_map([&](const Array& x) { return psum(x, axis, o, w); }, tree);
}
template <detail::NoLeaf T>
[[nodiscard]] T pmean(const T& tree, const NamedAxes& axis, const GroupOptions& o = {},
                      Where w = Where::here()) {
  return tree_map([&](const Array& x) { return pmean(x, axis, o, w); }, tree);
}
template <detail::NoLeaf T>
[[nodiscard]] T pmax(const T& tree, const NamedAxes& axis, const GroupOptions& o = {},
                     Where w = Where::here()) {
  return tree_map([&](const Array& x) { return pmax(x, axis, o, w); }, tree);
}
template <detail::NoLeaf T>
[[nodiscard]] T pmin(const T& tree, const NamedAxes& axis, const GroupOptions& o = {},
                     Where w = Where::here()) {
  return tree_map([&](const Array& x) { return pmin(x, axis, o, w); }, tree);
}
template <detail::NoLeaf T>
[[nodiscard]] T ppermute(const T& tree, const NamedAxes& axis, const Permutation& perm,
                         Where w = Where::here()) {
  return tree_map([&](const Array& x) { return ppermute(x, axis, perm, w); }, tree);
}
template <detail::NoLeaf T>
[[nodiscard]] T pshuffle(const T& tree, const NamedAxes& axis, const std::vector<int>& perm,
                         Where w = Where::here()) {
  return tree_map([&](const Array& x) { return pshuffle(x, axis, perm, w); }, tree);
}
template <detail::NoLeaf T>
[[nodiscard]] T pbroadcast(const T& tree, const NamedAxes& axis, int source, Where w = Where::here()) {
  return tree_map([&](const Array& x) { return pbroadcast(x, axis, source, w); }, tree);
}
template <detail::NoLeaf T>
[[nodiscard]] T pswapaxes(const T& tree, const NamedAxes& axis, int dim, const GroupOptions& o = {},
                          Where w = Where::here()) {
  return tree_map([&](const Array& x) { return pswapaxes(x, axis, dim, o, w); }, tree);
}
template <detail::NoLeaf T>
[[nodiscard]] T all_gather(const T& tree, const NamedAxes& axis, const AllGatherOptions& o = {},
                           Where w = Where::here()) {
  return tree_map([&](const Array& x) { return all_gather(x, axis, o, w); }, tree);
}
template <detail::NoLeaf T>
[[nodiscard]] T psum_scatter(const T& tree, const NamedAxes& axis, const PsumScatterOptions& o = {},
                             Where w = Where::here()) {
  return tree_map([&](const Array& x) { return psum_scatter(x, axis, o, w); }, tree);
}
template <detail::NoLeaf T>
[[nodiscard]] T all_to_all(const T& tree, const NamedAxes& axis, const AllToAllOptions& o = {},
                           Where w = Where::here()) {
  return tree_map([&](const Array& x) { return all_to_all(x, axis, o, w); }, tree);
}

}  // namespace shardarray
