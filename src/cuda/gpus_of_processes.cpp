#include "cuda/gpus_of_processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <sstream>
#include <utility>

#include "shardarray/error.h"

namespace shardarray::cuda {
namespace {

using Uuids = std::vector<std::string>;

Uuids uuids_of(const SeenGpus& seen) {
  Uuids all;
  for (const SeenGpus::Seen& g : seen.gpus) all.push_back(g.uuid);
  return all;
}

/// The GPUs of process `k` out of `processes` that share `gpus` GPUs.
std::vector<int> row_of(int k, int processes, int gpus) {
  if (gpus < processes) return {k % gpus};
  std::vector<int> row;
  for (int g = k * gpus / processes; g < (k + 1) * gpus / processes; g++) row.push_back(g);
  return row;
}

}  // namespace

std::string to_text(const SeenGpus& seen) {
  std::string text = fmt::format("{}\n{} {}\n", seen.failure, seen.logical_devices, seen.nccl);
  for (const SeenGpus::Seen& g : seen.gpus) text += fmt::format("{} {} {}\n", g.uuid, g.memory, g.name);
  return text;
}

SeenGpus seen_gpus(const std::string& text) {
  SeenGpus seen;
  std::istringstream lines(text);
  std::getline(lines, seen.failure);
  lines >> seen.logical_devices >> seen.nccl;
  for (SeenGpus::Seen g; lines >> g.uuid >> g.memory && std::getline(lines >> std::ws, g.name);)
    seen.gpus.push_back(g);
  return seen;
}

UsedGpus deal_out(const std::vector<SeenGpus>& all) {
  std::map<Uuids, int> watchers, dealt;  // by equal sets of GPUs
  for (std::size_t p = 0; p < all.size(); p++) {
    if (!all[p].failure.empty())
      throw DeviceError(
          fmt::format("{} So says process {} of {}, and CUDA devices are those of all processes.",
                      all[p].failure, p, all.size()));
    watchers[uuids_of(all[p])]++;
  }
  UsedGpus used;
  used.by_nccl = all[0].nccl != 0;
  std::map<std::string, int> users;  // by GPU
  std::map<std::string, int> on;     // devices on a GPU
  for (const SeenGpus& seen : all) {
    const Uuids uuids = uuids_of(seen);
    used.by_nccl &= seen.nccl == all[0].nccl;
    used.numbers.push_back(row_of(dealt[uuids]++, watchers[uuids], static_cast<int>(uuids.size())));
    used.uuids.emplace_back();
    for (const int g : used.numbers.back()) {
      const std::string& uuid = used.uuids.back().emplace_back(uuids[static_cast<std::size_t>(g)]);
      used.by_nccl &= users[uuid]++ == 0;
      on[uuid] += seen.logical_devices;
    }
  }
  used.memory = std::numeric_limits<std::uint64_t>::max();
  for (std::size_t p = 0; p < all.size(); p++)
    for (std::size_t k = 0; k < used.numbers[p].size(); k++) {
      const SeenGpus::Seen& gpu = all[p].gpus[static_cast<std::size_t>(used.numbers[p][k])];
      used.memory = std::min(used.memory, gpu.memory / static_cast<std::uint64_t>(on[gpu.uuid]));
      for (int d = 0; d < all[p].logical_devices; d++)
        used.devices.push_back({.id = static_cast<int>(used.devices.size()),
                                .platform = "cuda",
                                .process_index = static_cast<int>(p),
                                .kind = gpu.name,
                                .memory = static_cast<int>(k)});
    }
  return used;
}

}  // namespace shardarray::cuda
