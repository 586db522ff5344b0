#include "compile/addresses.h"

#include "base/sizes.h"
#include "compile/halo.h"

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
  auto [it, fresh] = memories_.try_emplace(m);
  Memory& mem = it->second;
  if (fresh) {
    const LocalValue& x = value(m);
    mem.instances = instances_of(*x.layout, in_.share_replicas);
    for (int leader : mem.instances.leader) {
      mem.device.push_back(
          in_.order->position(x.layout->order()->devices()[static_cast<std::size_t>(leader)]));
      mem.bytes.push_back(static_cast<std::uint64_t>(bytes_of(held_box(x, leader).size, x.type.dtype)));
      mem.refs.push_back({});
    }
  }
  return mem;
}

std::size_t Addresses::instance(int v, int p) {
  const Memory& m = memory(v);
  const Layout* l = value(storage(v).memory).layout;
  return static_cast<std::size_t>(m.instances.of_position[static_cast<std::size_t>(local(l, p))]);
}

}  // namespace shardarray
