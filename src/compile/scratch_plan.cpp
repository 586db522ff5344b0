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
  std::vector<bool> is_first;
  for (std::size_t d = 0; d < devices; d++) {  // kinds are numbered by first occurrence
    is_first.push_back(kind_[d] == kinds_);
    if (is_first.back()) kinds_++;
  }
  for (const auto& [m, life] : temporary) {
    const Memory& memory = at(memories, m);
    std::vector<Part>& parts = parts_[m];
    for (std::size_t i = 0; i < memory.device.size(); i++)
      if (is_first[static_cast<std::size_t>(memory.device[i])])
        parts.push_back({at(kind_, memory.device[i]), memory.bytes[i], 0});
  }
}

std::vector<std::uint64_t> ScratchPlan::place(const Lives& temporary) {
  std::vector<ScratchSpace> spaces(kinds_);
  std::vector<std::uint64_t> sizes(kinds_, 0);
  std::vector<std::pair<Life, int>> in_turn;
  for (const auto& [m, life] : temporary) in_turn.emplace_back(life, m);
  std::ranges::stable_sort(in_turn, {}, [](const auto& x) { return x.first.first; });
  for (const auto& [life, m] : in_turn)
    for (Part& part : parts_.at(m)) {
      const std::uint64_t bytes = (part.bytes + alignment_ - 1) / alignment_ * alignment_;
      part.offset = spaces[part.kind].place(bytes, life.first, life.last);
      sizes[part.kind] = std::max(sizes[part.kind], part.offset + bytes);
    }
  std::vector<std::uint64_t> bytes;
  bytes.reserve(kind_.size());
  for (const std::size_t kind : kind_) bytes.push_back(sizes[kind]);
  return bytes;
}

void ScratchPlan::give_addresses(const Lives& temporary) {
  std::vector<std::uint64_t> offsets(kinds_);
  for (const auto& [m, life] : temporary) {
    for (const Part& part : parts_.at(m)) offsets[part.kind] = part.offset;
    Memory& memory = at(memories_, m);
    for (std::size_t i = 0; i < memory.refs.size(); i++) {
      const int device = memory.device[i];
      memory.refs[i] = {static_cast<std::uint32_t>(device), offsets[at(kind_, device)]};
    }
  }
}

std::vector<std::uint64_t> ScratchPlan::held(const Lives& temporary, std::size_t groups) const {
  std::vector<std::vector<std::pair<std::size_t, std::int64_t>>> changes(groups + 1);  // kind, bytes
  for (const auto& [m, life] : temporary)
    for (const Part& part : parts_.at(m)) {
      const auto bytes = static_cast<std::int64_t>(part.bytes);
      at(changes, life.first).emplace_back(part.kind, bytes);
      at(changes, life.last + 1).emplace_back(part.kind, -bytes);
    }
  std::vector<std::int64_t> now(kinds_, 0);
  std::vector<std::uint64_t> most;
  for (std::size_t k = 0; k < groups; k++) {
    for (const auto& [kind, bytes] : changes[k]) now[kind] += bytes;
    most.push_back(static_cast<std::uint64_t>(std::ranges::max(now)));
  }
  return most;
}

}  // namespace shardarray
