#include "compile/addresses.h"

#include <algorithm>
#include <iterator>

#include "base/at.h"
#include "base/sizes.h"
#include "compile/halo.h"
#include "layout/tiles.h"

namespace shardarray {

// Whether no device does more than the first one (less where they share memory).
static bool do_alike(const Partition& p, const FlatGraph& g, const CompileInput& in) {
  const auto is_alike = [&](const LocalValue& v) {
    return !v.windows && v.layout->order() == in.order && lack_alike(*v.layout, *v.layout, v.type.shape);
  };
  const auto is_plain = [&](const LocalStep& s) {
    return s.node < 0 ? !s.assembly : s.transfer < 0 && !at(g.nodes, s.node).op->boxes;
  };
  return p.iterations.empty() && p.branches.empty() && std::ranges::all_of(p.values, is_alike) &&
         std::ranges::all_of(p.steps, is_plain);
}

// Whether loops are gathered depends on their number of items, so that needs all of them.
Addresses::Addresses(const Partition& p, const Fusion& f, const FlatGraph& g, const CompileInput& in)
    : p_(p),
      f_(f),
      in_(in),
      items_of_one_(in.is_explained && !in.is_run && !in.target->gathers_loops && do_alike(p, g, in)),
      memories_(p.values.size() + f.groups.size()),
      tiles_(p.values.size(), nullptr) {}

int Addresses::local(const Layout* l, int p) const {
  if (l->order() == in_.order) return p;
  return l->order()->position(in_.order->devices()[static_cast<std::size_t>(p)]);
}

const Box& Addresses::tile(int v, int p) {
  const LocalValue& x = value(v);
  const std::vector<Box>*& tiles = at(tiles_, v);
  if (!tiles && x.windows) tiles = x.windows.get();
  if (!tiles) {
    const Shape& shape = x.type.shape;
    const auto [it, fresh] = tiles_of_.try_emplace({x.layout, {shape.begin(), shape.end()}});
    if (fresh) it->second = all_tiles(*x.layout, shape);
    tiles = &it->second;
  }
  return at(*tiles, local(x.layout, p));
}

std::vector<int> Addresses::shared_memories() const {
  if (!in_.share_replicas) return {};
  std::map<std::pair<int, int>, int> known;  // process, memory
  std::vector<int> all;
  for (const Device& d : in_.order->devices())
    all.push_back(
        known.try_emplace({d.process_index, d.memory}, static_cast<int>(known.size())).first->second);
  if (known.size() == 1) all.clear();
  return all;
}

Memory& Addresses::memory(int v) {
  const int m = storage(v).memory;
  if (m < 0) throw InternalError("plan: a value that is not stored is read from memory");
  Memory& mem = at(memories_, m);
  if (!mem.refs.empty()) return mem;
  const LocalValue& x = value(m);
  const auto [it, fresh] = instances_.try_emplace(x.layout);
  if (fresh) it->second = instances_of(*x.layout, in_.share_replicas);
  mem.instances = &it->second;
  const std::vector<int>& leaders = mem.instances->leader;
  for (const int leader : leaders)
    mem.device.push_back(x.layout->order() == in_.order
                             ? leader
                             : in_.order->position(at(x.layout->order()->devices(), leader)));
  const auto bytes = [&](int leader) {
    return static_cast<std::uint64_t>(bytes_of(held_box(x, leader).size, x.type.dtype));
  };
  if (!x.windows && lack_alike(*x.layout, *x.layout, x.type.shape))
    mem.bytes.assign(leaders.size(), bytes(0));
  else std::ranges::transform(leaders, std::back_inserter(mem.bytes), bytes);
  mem.refs.resize(leaders.size());
  return mem;
}

std::size_t Addresses::instance(int v, int p) {
  const Memory& m = memory(v);
  const Layout* l = value(storage(v).memory).layout;
  return static_cast<std::size_t>(at(m.instances->of_position, local(l, p)));
}

}  // namespace shardarray
