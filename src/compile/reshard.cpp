#include "compile/reshard.h"

#include <algorithm>

#include "base/ceil_div.h"
#include "base/sizes.h"
#include "compile/halo.h"
#include "layout/axes.h"
#include "layout/tiles.h"
#include "layout/transfer.h"

namespace shardarray {
namespace {

// Visits every way to scatter `pieces` over the minor ends of the dimensions of `from` without empty tiles, until visit() says false.
// Pieces that end up in one dimension keep their order. 4096 ways at most: beyond, each dimension takes all or nothing.
template <class Visit>
void each_scatter(const Layout& from, const Shape& shape, const AxisList& reduced, const AxisList& pieces,
                  const Visit& visit) {
  const std::int64_t rank = from.rank();
  std::int64_t ways = 1;
  for (std::size_t k = 0; k < pieces.size() && ways <= 4096; k++) ways *= rank;
  const bool each = ways <= 4096;
  for (std::int64_t way = 0; way < (each ? ways : rank); way++) {
    auto dims = from.dims();
    std::int64_t rest = way;
    for (SubAxis piece : pieces) {
      dims[rest % rank].push_back(piece);
      if (each) rest /= rank;
    }
    bool filled = true;
    for (int d = 0; d < rank; d++)
      filled &= dims[d].size() == from.dims()[d].size() || product(dims[d]) <= shape[d];
    if (filled && !visit(without_partial_sums(from, reduced, std::move(dims)))) return;
  }
}

// The reduced sub-axes cut where the target cuts them, in the target's order; those it does not use come
// first.
AxisList scatter_pieces(const AxisList& reduced, const Layout& to) {
  const AxisList wanted = concatenated(to.dims());
  const AxisList pieces = cut(reduced, wanted);
  const auto place = [&](SubAxis a) {
    for (std::size_t k = 0; k < wanted.size(); k++)
      if (wanted[k].pre <= a.pre && a.pre < end_of(wanted[k])) return static_cast<int>(k);
    return -1;
  };
  AxisList out = pieces;
  std::stable_sort(out.begin(), out.end(), [&](SubAxis a, SubAxis b) { return place(a) < place(b); });
  return out;
}

// How many devices have the same of it.
std::int64_t replicas(const Layout& l) {
  std::int64_t pieces = product(l.unreduced());
  for (int d = 0; d < l.rank(); d++) pieces *= l.tiles(d);
  return l.order()->size() / pieces;
}

// Where a reduction may begin: as the summands lie, or cut first, which is free, along sub-axes on which devices have the same of them.
// These as the target has them, or all of them along one dimension: they share the work then, and its results are brought together.
std::vector<const Layout*> starts(const Layout& from, const Layout& to, const Shape& shape) {
  std::vector<const Layout*> all{&from};
  AxisList used = concatenated(from.dims());
  used.insert(used.end(), from.unreduced().begin(), from.unreduced().end());
  const AxisList idle = outside_of({{1, from.order()->size()}}, used);
  const auto add = [&](std::vector<AxisList> dims) {
    for (int d = 0; d < from.rank(); d++)
      if (dims[d] != from.dims()[d] && product(dims[d]) > shape[d]) return;
    const Layout* l = Layout::of(from.order(), std::move(dims), from.unreduced(), from.reducer());
    if (std::ranges::find(all, l) == all.end()) all.push_back(l);
  };
  if (idle.empty()) return all;
  auto as_target = from.dims();
  for (int d = 0; d < from.rank(); d++) {
    const CommonPrefix prefix = common_prefix(from.dims()[d], to.dims()[d]);
    if (!prefix.rest_a.empty()) continue;
    for (const SubAxis a : prefix.rest_b) {
      if (!outside_of({a}, idle).empty()) break;
      as_target[d].push_back(a);
    }
  }
  add(std::move(as_target));
  for (int d = 0; d < from.rank(); d++) {
    auto dims = from.dims();
    dims[d].insert(dims[d].end(), idle.begin(), idle.end());
    add(std::move(dims));
  }
  return all;
}

}  // namespace

ReshardPath reshard(const Layout* from, const Layout* to, const Shape& shape, std::int64_t itemsize,
                    const CostModel& model) {
  if (from == to) return {};
  const auto by_way_of = [&](const Layout* middle) {
    ReshardPath path = reshard(from, middle, shape, itemsize, model);
    ReshardPath rest = reshard(middle, to, shape, itemsize, model);
    path.layouts.insert(path.layouts.end(), rest.layouts.begin(), rest.layouts.end());
    path.cost += rest.cost;
    return path;
  };
  if (!from->unreduced().empty() && !to->unreduced().empty() && from->reducer() != to->reducer())
    return by_way_of(Layout::of(from->order(), from->dims()));
  if (!made_axes(*from, *to).empty() && !makes_summands(*from, *to, shape))
    return by_way_of(before_summands(*from, *to));
  const auto cost = [&](const Layout* a, const Layout* b) -> MoveCost {
    const std::int64_t bytes = transfer_cost(*a, *b, shape, itemsize).bytes;
    const bool takes_memory = bytes > 0 && model.has_peaks();  // where it comes from is held to its end
    return {model.transfer(bytes), takes_memory ? model.peak(add_sizes(tile_bytes(*a, shape, itemsize),
                                                                       tile_bytes(*b, shape, itemsize)))
                                                : 0};
  };
  ReshardPath best{{to}, cost(from, to)};
  const AxisList reduced = reduced_axes(*from, *to);
  if (reduced.empty()) return best;
  const std::int64_t summands = product(reduced), copies = model.replicas_are_apart() ? replicas(*from) : 1,
                     bytes = tile_bytes(*from, shape, itemsize);
  const double least = model.transfer(ceil_div(mul_sizes(summands - 1, bytes), mul_sizes(summands, copies)));
  // An exchange from partial sums is no step: the first path of real ones is taken.
  bool replace = transfer_cost(*from, *to, shape, itemsize).kind == TransferKind::exchange;
  const auto consider = [&](const Layout* start, const Layout* middle) {
    if (!replace && best.cost.all() <= least) return false;
    ReshardPath path;
    const Layout* there = from;
    for (const Layout* next : {start, middle, to}) {
      if (next == there) continue;
      path.layouts.push_back(next);
      path.cost += cost(there, next);
      there = next;
    }
    if (path.layouts.size() == 1) return true;
    if (path.cost.all() < best.cost.all() || replace) best = std::move(path);
    replace = false;
    return true;
  };
  for (const Layout* start :
       model.replicas_are_apart() ? starts(*from, *to, shape) : std::vector<const Layout*>{from})
    if (consider(start, without_partial_sums(*start, reduced, start->dims())))
      each_scatter(*start, shape, reduced, scatter_pieces(reduced, *to),
                   [&](const Layout* middle) { return consider(start, middle); });
  return best;
}

Transfer describe_transfer(const Type& t, const Layout* from, const Layout* to) {
  const auto size = static_cast<std::int64_t>(itemsize(t.dtype));
  const TransferCost c = from->order() == to->order() ? transfer_cost(*from, *to, t.shape, size)
                                                      : foreign_cost(*from, *to, t.shape, size);
  Transfer r;
  r.shape = t.shape;
  r.dtype = t.dtype;
  r.kind = c.kind;
  r.axes = c.axes;
  r.bytes = c.bytes;
  return r;
}

}  // namespace shardarray
