#include "compile/scratch_plan.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/at.h"
#include "compile/scratch_space.h"

namespace shardarray {

ScratchPlan::ScratchPlan(std::vector<Memory>& memories, const Lives& temporary, std::size_t devices,
                         std::uint64_t alignment)
    : memories_(memories), alignment_(alignment), kind_(devices, 0) {
  constexpr std::int64_t not_there = -1;
  std::vector<std::int64_t> bytes(devices);
  for (const auto& [m, life] : temporary) {
    const Memory& memory = at(memories, m);
    std::ranges::fill(bytes, not_there);
    for (std::size_t i = 0; i < memory.device.size(); i++)
      at(bytes, memory.device[i]) = static_cast<std::int64_t>(memory.bytes[i]);
    if (std::ranges::adjacent_find(bytes, std::not_equal_to<>()) == bytes.end()) continue;
    std::map<std::pair<std::size_t, std::int64_t>, std::size_t> kinds;
    for (std::size_t d = 0; d < devices; d++)
      kind_[d] = kinds.try_emplace({kind_[d], bytes[d]}, kinds.size()).first->second;
  }
  for (std::size_t d = 0; d < devices; d++)  // kinds are numbered as they come
    if (kind_[d] == devices_.size()) devices_.push_back(static_cast<int>(d));
}

template <class F> void ScratchPlan::each_kind(const Memory& memory, const F& f) const {
  for (std::size_t i = 0; i < memory.device.size(); i++)
    if (const std::size_t kind = at(kind_, memory.device[i]); devices_[kind] == memory.device[i]) f(kind, i);
}

std::vector<std::uint64_t> ScratchPlan::place(const Lives& temporary) {
  std::vector<ScratchSpace> spaces(devices_.size());
  std::vector<std::uint64_t> sizes(devices_.size(), 0), offsets(devices_.size());
  std::vector<std::pair<Life, int>> in_turn;
  for (const auto& [m, life] : temporary) in_turn.emplace_back(life, m);
  std::ranges::stable_sort(in_turn, {}, [](const auto& x) { return x.first.first; });
  for (const auto& [life, m] : in_turn) {
    Memory& memory = at(memories_, m);
    each_kind(memory, [&, life = life](std::size_t kind, std::size_t i) {
      const std::uint64_t bytes = (memory.bytes[i] + alignment_ - 1) / alignment_ * alignment_;
      offsets[kind] = spaces[kind].place(bytes, life.first, life.last);
      sizes[kind] = std::max(sizes[kind], offsets[kind] + bytes);
    });
    for (std::size_t i = 0; i < memory.refs.size(); i++) {
      const int device = memory.device[i];
      memory.refs[i] = {static_cast<std::uint32_t>(device), offsets[at(kind_, device)]};
    }
  }
  std::vector<std::uint64_t> bytes;
  bytes.reserve(kind_.size());
  for (const std::size_t kind : kind_) bytes.push_back(sizes[kind]);
  return bytes;
}

std::vector<std::uint64_t> ScratchPlan::held(const Lives& temporary, std::size_t groups) const {
  std::vector<std::vector<std::pair<std::size_t, std::int64_t>>> changes(groups + 1);  // kind, bytes
  for (const auto& [m, life] : temporary) {
    const Memory& memory = at(memories_, m);
    each_kind(memory, [&, life = life](std::size_t kind, std::size_t i) {
      const auto bytes = static_cast<std::int64_t>(memory.bytes[i]);
      at(changes, life.first).emplace_back(kind, bytes);
      at(changes, life.last + 1).emplace_back(kind, -bytes);
    });
  }
  std::vector<std::int64_t> now(devices_.size(), 0);
  std::vector<std::uint64_t> most;
  for (std::size_t k = 0; k < groups; k++) {
    for (const auto& [kind, bytes] : changes[k]) now[kind] += bytes;
    most.push_back(static_cast<std::uint64_t>(std::ranges::max(now)));
  }
  return most;
}

}  // namespace shardarray
