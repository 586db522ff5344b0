#include "layout/pictures/device_ids.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardarray {

namespace {

struct IdRun {
  int first, size;
};
std::vector<IdRun> consecutive(const std::vector<int>& ids) {
  std::vector<IdRun> runs;
  for (int id : ids)
    if (!runs.empty() && runs.back().first + runs.back().size == id) runs.back().size++;
    else runs.push_back({id, 1});
  return runs;
}

// How many runs from `at` on have equal size and spacing.
std::size_t regular(const std::vector<IdRun>& runs, std::size_t at) {
  std::size_t end = at + 1;
  while (end < runs.size() && runs[end].size == runs[at].size &&
         runs[end].first - runs[end - 1].first == runs[at + 1].first - runs[at].first)
    end++;
  return end - at;
}

std::string run_text(const IdRun& run, std::string_view separator) {
  const int last = run.first + run.size - 1;
  if (run.size == 1) return std::to_string(run.first);
  return fmt::format("{}{}{}", run.first, run.size == 2 ? separator : "-", last);
}

}  // namespace

std::string id_runs(const std::vector<int>& ids, std::string_view separator) {
  const std::vector<IdRun> runs = consecutive(ids);
  std::string out;
  for (std::size_t at = 0; at < runs.size();) {
    if (!out.empty()) out += separator;
    const std::size_t count = regular(runs, at), worth = runs[at].size == 1 ? 4 : 3;
    if (count < worth) {
      out += run_text(runs[at++], separator);
      continue;
    }
    const IdRun &first = runs[at], &last = runs[at + count - 1];
    out += fmt::format("{}-{}:", first.first, last.first + last.size - 1);
    if (first.size > 1) out += fmt::format("{}/", first.size);
    out += std::to_string(runs[at + 1].first - first.first);
    at += count;
  }
  return out;
}

std::string device_runs(const std::vector<Device>& devices) {
  std::vector<int> ids;
  ids.reserve(devices.size());
  for (const Device& d : devices) ids.push_back(d.id);
  std::sort(ids.begin(), ids.end());
  return fmt::format("{}:{}", devices[0].platform, id_runs(ids));
}

std::map<int, std::vector<int>> devices_by_process(const std::vector<Device>& devices) {
  std::map<int, std::vector<int>> all;
  for (const Device& d : devices) all[d.process_index].push_back(d.id);
  for (auto& [process, ids] : all) std::sort(ids.begin(), ids.end());
  return all;
}

std::string upper_case(std::string platform) {
  for (char& c : platform)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
  return platform;
}

}  // namespace shardarray
