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

using Dims = std::vector<AxisList>;

// Visits every way to scatter `pieces` over the minor ends of the dimensions `from` without empty tiles, until visit() returns false.
// Pieces in one dimension keep their order. At most 4096 ways; if there are more, one dimension takes all.
template <class Visit>
void each_scatter(const Dims& from, const Shape& shape, const AxisList& pieces, const Visit& visit) {
  const auto rank = static_cast<std::int64_t>(from.size());
  std::int64_t ways = 1;
  for (std::size_t k = 0; k < pieces.size() && ways <= 4096; k++) ways *= rank;
  const bool each = ways <= 4096;
  Dims dims;
  for (std::int64_t way = 0; way < (each ? ways : rank); way++) {
    dims = from;
    std::int64_t rest = way;
    for (SubAxis piece : pieces) {
      dims[static_cast<std::size_t>(rest % rank)].push_back(piece);
      if (each) rest /= rank;
    }
    bool filled = true;
    for (std::size_t d = 0; d < dims.size(); d++) {
      if (dims[d].size() == from[d].size()) continue;
      filled &= product(dims[d]) <= shape[d];
      dims[d] = merged(dims[d]);
    }
    if (filled && !visit(dims)) return;
  }
}

// The reduced sub-axes, split where the target splits them, in the target's order; those that it does not use come first.
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

// Shards the summands, for free, as the target is sharded along sub-axes on which devices hold the same of them; null: nowhere.
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
  // Of a step in which `bytes` are received; its source is held until it ends.
  const auto cost = [&](std::int64_t bytes, const Dims& a, const Dims& b, std::int64_t held = 0) -> MoveCost {
    const auto all = [&] {
      return add_sizes(held, add_sizes(tile_bytes(a, shape, itemsize), tile_bytes(b, shape, itemsize)));
    };
    return {model.transfer(bytes), bytes > 0 && model.has_peaks() ? model.peak(all()) : 0};
  };
  const auto moved = [&](const Dims& a, const Layout& b) {  // in a step without reduction
    return cost(a == b.dims() ? 0 : most_missing(a, b, shape) * itemsize, a, b.dims());
  };
  const AxisList reduced = reduced_axes(*from, *to);
  if (reduced.empty())
    return {{to},
            made_axes(*from, *to).empty() ? moved(from->dims(), *to) : MoveCost{}};  // summands are free
  const TransferCost direct = transfer_cost(*from, *to, shape, itemsize);
  ReshardPath best{{to}, cost(direct.bytes, from->dims(), to->dims())};
  const std::int64_t summands = product(reduced);
  // An exchange from partial sums is no single step: the first path of real ones is taken.
  bool replace = direct.kind == TransferKind::exchange;
  const auto consider_from = [&](const Layout* start) {
    const std::int64_t bytes = tile_bytes(*start, shape, itemsize),
                       scattered = reduce_scatter_bytes(summands, bytes);
    const double least = model.transfer(scattered);
    const std::int64_t held = start == from ? 0 : tile_bytes(*from, shape, itemsize);
    const MoveCost before =
        start == from ? MoveCost{} : moved(from->dims(), *start);  // uneven tiles move a little
    const auto consider = [&](const Dims& middle, std::int64_t added) {
      if (!replace && best.cost.all() <= least) return false;
      const bool is_last = middle == to->dims();
      if (is_last && start == from) return true;
      MoveCost all = before;
      all += cost(added, start->dims(), middle, held);
      if (!is_last) all += moved(middle, *to);
      if (all.all() < best.cost.all() || replace) {
        best = {{}, all};
        if (start != from) best.layouts.push_back(start);
        best.layouts.push_back(without_partial_sums(*start, reduced, middle));
        if (!is_last) best.layouts.push_back(to);
      }
      replace = false;
      return true;
    };
    if (consider(start->dims(), all_reduce_bytes(summands, bytes)))
      each_scatter(start->dims(), shape, scatter_pieces(reduced, *to),
                   [&](const Dims& middle) { return consider(middle, scattered); });
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
