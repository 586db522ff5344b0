#include "compile/shared_copies.h"

#include <algorithm>
#include <set>

#include "base/at.h"
#include "layout/tiles.h"

namespace shardarray {
namespace {

constexpr std::size_t kFewReaders = 3;  // two, a product and its derivative, share what the first one brings

struct Shared {
  int value;
  const Layout* layout;
  double moved;  // the price of what moves for all its readers
};

// What moves for node u, and for its results if they are partial sums.
double moved_for(int u, const Trial& t, const FlatGraph& g, const NodeFacts& facts) {
  double moved = at(t.moved, u);
  const FlatNode& n = at(g.nodes, u);
  for (int v = n.first_out; v < n.first_out + static_cast<int>(n.out_types.size()); v++) {
    const int part = at(t.partition.of_value, v);
    if (part < 0 || at(t.partition.values, part).layout->unreduced().empty()) continue;
    for (const int reader : at(facts.uses.nodes, v)) moved += at(t.moved, reader);
  }
  return moved;
}

std::vector<Shared> shared_values(const Trial& t, const FlatGraph& g, const NodeFacts& facts,
                                  SubAxisLayouts& layouts) {
  std::vector<Shared> all;
  for (int v = 0; v < std::ssize(facts.uses.nodes); v++) {
    const int part = at(t.partition.of_value, v);
    if (part < 0 || at(facts.makings, at(g.producer, v)) != Making::once) continue;
    const Layout* const l = at(t.partition.values, part).layout;
    if (!l->unreduced().empty() || !layouts.can_express(l)) continue;
    const std::vector<int>& readers = at(facts.uses.nodes, v);
    const std::set<int> distinct(readers.begin(), readers.end());
    double moved = 0;
    std::size_t movers = 0;
    for (const int u : distinct)
      if (const double x = moved_for(u, t, g, facts); x > 0) {
        moved += x;
        movers++;
      }
    if (movers >= kFewReaders) all.push_back({v, l, moved});
  }
  return all;
}

}  // namespace

std::vector<Copies> shared_copies(const Trial& t, double worth, const FlatGraph& g, const NodeFacts& facts,
                                  StrategySearch& search) {
  SubAxisLayouts& layouts = search.layouts();
  const SubAxes& sub_axes = layouts.sub_axes();
  const CostModel& model = search.reshards().model();
  const std::vector<Shared> all = shared_values(t, g, facts, layouts);
  std::vector<SubAxisDims> places;
  places.reserve(all.size());
  for (const Shared& s : all) places.push_back(to_sub_axes(sub_axes, *s.layout));
  std::vector<Copies> found;
  for (const SubAxisList& kind : sharing_axes(sub_axes, places)) {
    Copies copies(g.types.size(), nullptr);
    double saved = 0;  // at most: a replicated copy serves every layout, and may cost no more than a tile
    for (std::size_t k = 0; k < all.size(); k++) {
      const Shared& s = all[k];
      const Layout* const to = layouts.of(without(places[k], kind));
      const Type& type = at(g.types, s.value);
      const double tile =
          model.transfer(tile_bytes(*s.layout, type.shape, static_cast<std::int64_t>(itemsize(type.dtype))));
      if (to == s.layout || tile >= s.moved) continue;
      at(copies, s.value) = to;
      saved += s.moved - tile;
    }
    if (saved > worth && std::ranges::find(found, copies) == found.end()) found.push_back(std::move(copies));
  }
  return found;
}

}  // namespace shardarray
