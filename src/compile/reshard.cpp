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

// The summands cut, which is free, where the target is cut along sub-axes on which devices have the same of them; null: nowhere.
const Layout* cut_as(const Layout& to, const Layout& from, const Shape& shape) {
  AxisList used = concatenated(from.dims());
  used.insert(used.end(), from.unreduced().begin(), from.unreduced().end());
  const AxisList idle = outside_of({{1, from.order()->size()}}, used);
  auto dims = from.dims();
  for (int d = 0; d < from.rank(); d++) {
    const CommonPrefix prefix = common_prefix(from.dims()[d], to.dims()[d]);
    if (!prefix.rest_a.empty()) continue;
    for (const SubAxis a : prefix.rest_b) {
      if (!outside_of({a}, idle).empty()) break;
      dims[d].push_back(a);
    }
    if (dims[d] != from.dims()[d] && product(dims[d]) > shape[d]) return nullptr;
  }
  if (dims == from.dims()) return nullptr;
  return Layout::of(from.order(), std::move(dims), from.unreduced(), from.reducer());
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
  const auto cost = [&](const Layout* a, const Layout* b, std::int64_t held = 0) -> MoveCost {
    const std::int64_t bytes = transfer_cost(*a, *b, shape, itemsize).bytes;
    const bool takes_memory = bytes > 0 && model.has_peaks();  // where it comes from is held to its end
    const auto all = [&] {
      return add_sizes(held, add_sizes(tile_bytes(*a, shape, itemsize), tile_bytes(*b, shape, itemsize)));
    };
    return {model.transfer(bytes), takes_memory ? model.peak(all()) : 0};
  };
  ReshardPath best{{to}, cost(from, to)};
  const AxisList reduced = reduced_axes(*from, *to);
  if (reduced.empty()) return best;
  const std::int64_t summands = product(reduced);
  // An exchange from partial sums is no step: the first path of real ones is taken.
  bool replace = transfer_cost(*from, *to, shape, itemsize).kind == TransferKind::exchange;
  const auto consider_from = [&](const Layout* start) {
    const std::int64_t bytes = tile_bytes(*start, shape, itemsize);
    const double least = model.transfer(ceil_div(mul_sizes(summands - 1, bytes), summands));  // a scatter
    const std::int64_t held = start == from ? 0 : tile_bytes(*from, shape, itemsize);
    const auto consider = [&](const Layout* middle) {
      if (!replace && best.cost.all() <= least) return false;
      ReshardPath path;
      const Layout* there = from;
      for (const Layout* next : {start, middle, to}) {
        if (next == there) continue;
        path.layouts.push_back(next);
        path.cost += cost(there, next, there == start ? held : 0);
        there = next;
      }
      if (path.layouts.size() == 1) return true;
      if (path.cost.all() < best.cost.all() || replace) best = std::move(path);
      replace = false;
      return true;
    };
    if (consider(without_partial_sums(*start, reduced, start->dims())))
      each_scatter(*start, shape, reduced, scatter_pieces(reduced, *to), consider);
  };
  const Layout* const cut = model.replicas_are_apart() ? cut_as(*to, *from, shape) : nullptr;
  if (cut != nullptr) consider_from(cut);
  consider_from(from);
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
