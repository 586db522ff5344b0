#include "compile/addresses.h"

#include <algorithm>
#include <iterator>

#include "base/at.h"
#include "base/sizes.h"
#include "compile/halo.h"
#include "layout/tiles.h"

namespace shardarray {

int Addresses::local(const Layout* l, int p) const {
  if (l->order() == in_.order) return p;
  return l->order()->position(in_.order->devices()[static_cast<std::size_t>(p)]);
}

Box Addresses::tile(int v, int p) const {
  const LocalValue& x = value(v);
  return held_box(x, local(x.layout, p));
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
  if (found_.empty()) found_.resize(p_.values.size());
  if (Memory* const found = at(found_, m)) return *found;
  Memory& mem = memories_[m];
  at(found_, m) = &mem;
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
