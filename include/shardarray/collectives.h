// Collectives: operations over the rows of a mapped axis, by its name. Inside vmap, pmap and shard_map, where they mean the
// same: position p of an axis of size n has its own value x_p. Every function takes an array or a tree of arrays (leaf by
// leaf). Several names, `psum(x, {"i", "j"})`, are one axis of the product's size, the first name most significant.
//
// `groups` splits the axis: lists of positions in which each occurs exactly once; positions communicate only within their
// list, in its order. Reductions allow groups of different sizes, everything else wants equal ones; one axis only.
//
// Results have the shape and dtype of x unless a doc says otherwise. All throw TraceError for a name that is not in scope, Error
// for no name, one that stands twice, groups or permutations that are none, ShapeError for axes and sizes that do not fit.
// Derivatives are those of classic JAX: the transpose of psum is psum of the cotangents.
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

/// Options of psum, pmean, pmax, pmin and pswapaxes; of all_gather, psum_scatter and all_to_all.
struct SHARDARRAY_API GroupOptions {
  Groups groups = {};  ///< none: the whole axis
};
struct SHARDARRAY_API AllGatherOptions {
  int axis = 0;        ///< of the result; negative counts from its end
  Flag tiled = false;  ///< concatenate along an existing dimension instead of stacking along a new one
  Groups groups = {};  ///< of one size; none: the whole axis
};
struct SHARDARRAY_API PsumScatterOptions {
  int axis = 0;        ///< the dimension that is scattered
  Flag tiled = false;  ///< each gets a part of the dimension; otherwise it has the axis' size and goes away
  Groups groups = {};  ///< of one size; none: the whole axis
};
struct SHARDARRAY_API AllToAllOptions {
  int split_axis = 0;   ///< the dimension whose parts are sent
  int concat_axis = 0;  ///< where those that come are put: counted, when not tiled, after split_axis has gone
  Flag tiled = false;   ///< split_axis is cut into parts; otherwise it has the axis' size and goes away
  Groups groups = {};   ///< of one size; none: the whole axis
};
/// (source, destination) pairs of positions.
using Permutation = std::vector<std::pair<int, int>>;
/// Every one of n positions to the one `shift` behind it, around: ring(4) is {0, 1}, {1, 2}, {2, 3}, {3, 0}, and `ring(n, -1)` its
/// opposite. Of `axis_size(axis)` where a map's own size is meant. Throws Error for n < 1.
///
///     sa::ppermute(x, "i", sa::ring(sa::axis_size("i")));
[[nodiscard]] SHARDARRAY_API Permutation ring(std::int64_t n, std::int64_t shift = 1,
                                              Where w = Where::here());

/// The number of positions, of all axes together: for shapes and scales.
[[nodiscard]] SHARDARRAY_API std::int64_t axis_size(const NamedAxes& axis, Where w = Where::here());
/// This position along the axis: int32 scalar, from 0.
[[nodiscard]] SHARDARRAY_API Array axis_index(const NamedAxes& axis, Where w = Where::here());

/// The sum over all positions (of a group), the same for each; bool sums as int32, other integers keep their dtype and wrap. psum
/// of a literal is a literal: psum(1, "i") is the number of positions. In groups of different sizes that number is the first
/// group's for all positions, as in JAX.
[[nodiscard]] SHARDARRAY_API Array psum(const Array& x, const NamedAxes& axis, const GroupOptions& o = {},
                                        Where w = Where::here());
/// psum(x) / psum(1), so no mean in groups of different sizes; floating: of bool and integers float32 (float64 for 64-bit ones).
[[nodiscard]] SHARDARRAY_API Array pmean(const Array& x, const NamedAxes& axis, const GroupOptions& o = {},
                                         Where w = Where::here());
/// The largest value over all positions; of bools or. Not differentiable: Error.
[[nodiscard]] SHARDARRAY_API Array pmax(const Array& x, const NamedAxes& axis, const GroupOptions& o = {},
                                        Where w = Where::here());
/// The smallest value over all positions; of bools and. Not differentiable: Error.
[[nodiscard]] SHARDARRAY_API Array pmin(const Array& x, const NamedAxes& axis, const GroupOptions& o = {},
                                        Where w = Where::here());
/// x of the source that has this position as its destination; zeros where there is none. Over several axes the positions are
/// those of the devices, the outermost map most significant, whatever the order of the names. Throws Error for a position out of
/// range, and for one that stands twice as a source or as a destination.
[[nodiscard]] SHARDARRAY_API Array ppermute(const Array& x, const NamedAxes& axis, const Permutation& perm,
                                            Where w = Where::here());
/// x of position perm[p]: perm is a permutation of all positions, else Error.
[[nodiscard]] SHARDARRAY_API Array pshuffle(const Array& x, const NamedAxes& axis,
                                            const std::vector<int>& perm, Where w = Where::here());
/// x of position `source`, for all. Throws Error for a position out of range.
[[nodiscard]] SHARDARRAY_API Array pbroadcast(const Array& x, const NamedAxes& axis, int source,
                                              Where w = Where::here());
/// all_to_all with split_axis == concat_axis == dim.
[[nodiscard]] SHARDARRAY_API Array pswapaxes(const Array& x, const NamedAxes& axis, int dim,
                                             const GroupOptions& o = {}, Where w = Where::here());
/// All n values, stacked ([..] -> [.., n, ..], n at `axis`) or, tiled, concatenated ([.., d, ..] -> [.., n d, ..]) in order of the
/// positions.
[[nodiscard]] SHARDARRAY_API Array all_gather(const Array& x, const NamedAxes& axis,
                                              const AllGatherOptions& o = {}, Where w = Where::here());
/// Part p of the sum over all n positions, for position p: [.., n, ..] -> [..] or, tiled, [.., d, ..] -> [.., d / n, ..]; types
/// as psum. Throws ShapeError where n is not the size, or tiled does not divide it.
[[nodiscard]] SHARDARRAY_API Array psum_scatter(const Array& x, const NamedAxes& axis,
                                                const PsumScatterOptions& o = {}, Where w = Where::here());
/// Part p of every position's value, for position p: split_axis goes, the n parts stand along concat_axis; tiled, the one is
/// divided by n, the other multiplied. Throws as psum_scatter.
[[nodiscard]] SHARDARRAY_API Array all_to_all(const Array& x, const NamedAxes& axis,
                                              const AllToAllOptions& o = {}, Where w = Where::here());

namespace detail {
template <class T>
concept NoLeaf = !std::convertible_to<const T&, Array>;
}  // namespace detail
/// The same of every array of a tree.
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
