#include "layout/transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/ceil_div.h"
#include "base/sizes.h"
#include "layout/axes.h"
#include "layout/tiles.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

// Per dimension, what differs after the common prefix: `before` is given up, `after` is added.
struct Difference {
  std::vector<AxisList> before, after;
};
Difference difference(const Layout& from, const Layout& to) {
  Difference out;
  for (int d = 0; d < from.rank(); d++) {
    CommonPrefix prefix = common_prefix(from.dims()[d], to.dims()[d]);
    out.before.push_back(std::move(prefix.rest_a));
    out.after.push_back(std::move(prefix.rest_b));
  }
  return out;
}

bool all_empty(const std::vector<AxisList>& lists) {
  return std::all_of(lists.begin(), lists.end(), [](const AxisList& l) { return l.empty(); });
}

// One dimension gives up sub-axes at its minor end, and another one adds the same at its own.
bool is_all_to_all(const Difference& diff) {
  int sources = 0, targets = 0;
  for (std::size_t d = 0; d < diff.before.size(); d++) {
    if (!diff.before[d].empty() && !diff.after[d].empty()) return false;
    sources += !diff.before[d].empty();
    targets += !diff.after[d].empty();
  }
  return sources == 1 && targets == 1 &&
         sorted_merged(concatenated(diff.before)) == sorted_merged(concatenated(diff.after));
}

// A transfer without reduction.
TransferCost movement(const Layout& from, const Layout& to, const Shape& shape, std::int64_t itemsize) {
  if (from.dims() == to.dims()) return {};
  const std::int64_t bytes = most_missing(from, to, shape) * itemsize;
  if (bytes == 0) return {TransferKind::slice, {}, 0};
  const Difference diff = difference(from, to);
  TransferKind kind = TransferKind::exchange;
  bool same_tiles = true;
  for (int d = 0; d < from.rank(); d++) same_tiles &= from.tiles(d) == to.tiles(d);
  if (same_tiles) kind = TransferKind::permute;
  else if (all_empty(diff.after)) kind = TransferKind::all_gather;
  else if (is_all_to_all(diff)) kind = TransferKind::all_to_all;
  return {kind, cover(concatenated(diff.before), concatenated(diff.after)), bytes};
}

}  // namespace

const char* name(TransferKind k) {
  constexpr const char* names[] = {"none",       "slice",      "all_reduce", "reduce_scatter",
                                   "all_gather", "all_to_all", "permute",    "exchange"};
  return names[static_cast<int>(k)];
}

static void check_pair(const Layout& from, const Layout& to) {
  const bool same_reducer = to.unreduced().empty() ||
                            (from.unreduced().empty() && to.reducer() == Reducer::sum) ||
                            from.reducer() == to.reducer();
  if (from.order() != to.order() || from.rank() != to.rank() || !same_reducer)
    throw InternalError(
        fmt::format("transfer_cost: {} to {} is no transfer. Both have one device order and rank, "
                    "and only sums are split. Please report this.",
                    from.to_string(), to.to_string()));
}

AxisList reduced_axes(const Layout& from, const Layout& to) {
  check_pair(from, to);
  return sorted_merged(outside_of(from.unreduced(), to.unreduced()));
}

AxisList made_axes(const Layout& from, const Layout& to) {
  check_pair(from, to);
  return sorted_merged(outside_of(to.unreduced(), from.unreduced()));
}

bool makes_summands(const Layout& from, const Layout& to, const Shape& shape) {
  const AxisList made = made_axes(from, to);
  const Difference diff = difference(from, to);
  for (int d = 0; d < from.rank(); d++)  // else part of a finer tile may lie in no tile of its device
    if (from.tiles(d) != to.tiles(d) && shape[d] % from.tiles(d) != 0) return false;
  return !made.empty() && reduced_axes(from, to).empty() && all_empty(diff.after) &&
         outside_of(concatenated(diff.before), made).empty();
}

const Layout* before_summands(const Layout& from, const Layout& to) {
  return Layout::of(to.order(), to.dims(), shared_axes(to.unreduced(), from.unreduced()), to.reducer());
}

const Layout* without_partial_sums(const Layout& layout, const AxisList& reduced,
                                   std::vector<AxisList> dims) {
  return Layout::of(layout.order(), std::move(dims), *without_axes(layout.unreduced(), reduced),
                    layout.reducer());
}

std::int64_t all_reduce_bytes(std::int64_t g, std::int64_t bytes) {
  return ceil_div(mul_sizes(2 * (g - 1), bytes), g);
}
std::int64_t reduce_scatter_bytes(std::int64_t g, std::int64_t bytes) {
  return ceil_div(mul_sizes(g - 1, bytes), g);
}

TransferCost transfer_cost(const Layout& from, const Layout& to, const Shape& shape, std::int64_t itemsize) {
  const AxisList reduced = reduced_axes(from, to);
  if (!made_axes(from, to).empty()) {
    if (!makes_summands(from, to, shape))
      throw InternalError(
          fmt::format("transfer_cost: {} to {} is more than one transfer. Please report this.",
                      from.to_string(), to.to_string()));
    return {TransferKind::slice, {}, 0};
  }
  if (reduced.empty()) return movement(from, to, shape, itemsize);
  const std::int64_t g = product(reduced), bytes = tile_bytes(from, shape, itemsize);
  const std::int64_t all_reduce = all_reduce_bytes(g, bytes);
  if (from.dims() == to.dims()) return {TransferKind::all_reduce, reduced, all_reduce};
  const Difference diff = difference(from, to);
  if (all_empty(diff.before) && sorted_merged(concatenated(diff.after)) == reduced)
    return {TransferKind::reduce_scatter, reduced, reduce_scatter_bytes(g, bytes)};
  const TransferCost rest = movement(*without_partial_sums(from, reduced, from.dims()), to, shape, itemsize);
  return {TransferKind::exchange, cover(reduced, rest.axes), add_sizes(all_reduce, rest.bytes)};
}

std::vector<std::int64_t> received_of_each(const Layout& from, const Layout& to, const Shape& shape,
                                           std::int64_t itemsize, TransferKind kind) {
  const AxisList reduced = reduced_axes(from, to);
  std::vector<std::int64_t> each;
  if (reduced.empty()) {
    if (lack_alike(from, to, shape)) return {};
    each = missing_of_each(from, to, shape);
    for (std::int64_t& n : each) n *= itemsize;
  } else if (kind != TransferKind::exchange) {
    if (lack_alike(from, from, shape)) return {};
    const std::int64_t g = product(reduced);
    const auto received = kind == TransferKind::all_reduce ? all_reduce_bytes : reduce_scatter_bytes;
    for (const Box& held : all_tiles(from, shape)) each.push_back(received(g, held.elements() * itemsize));
  }
  return each;
}

// The elements that are wanted by some device that has a summand of them.
static std::int64_t wanted_where_summands_are(const Layout& from, const Layout& to, const Shape& shape) {
  const std::vector<Box> held = all_tiles(from, shape), wanted = all_tiles(to, shape);
  std::set<std::vector<std::int64_t>> seen;
  std::int64_t elements = 0;
  for (std::size_t p = 0; p < held.size(); p++) {
    const Box both = intersect(held[p], wanted[p]);
    if (!both.empty() && seen.emplace(both.lo.begin(), both.lo.end()).second)
      elements = add_sizes(elements, both.elements());
  }
  return elements;
}

std::int64_t least_received(const Layout& from, const Layout& to, const Shape& shape, std::int64_t itemsize) {
  if (!to.unreduced().empty()) return 0;
  const std::int64_t missing = most_missing(from, to, shape);
  if (from.unreduced().empty()) return missing * itemsize;
  if (!lack_alike(from, from, shape) || !lack_alike(to, to, shape)) return 0;
  const std::int64_t devices = to.order()->size(), all = num_elements(shape),
                     there = missing == 0 ? all : wanted_where_summands_are(from, to, shape);
  std::int64_t tiles = 1;
  for (int d = 0; d < to.rank(); d++) tiles *= to.tiles(d);
  const std::int64_t moves = mul_sizes(all, product(from.unreduced()) + devices / tiles - 1) - there;
  return ceil_div(mul_sizes(moves, itemsize), devices);
}

}  // namespace shardarray
