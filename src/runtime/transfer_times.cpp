#include "runtime/transfer_times.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "runtime/machine.h"

namespace shardarray {
namespace {

/// The groups of devices of a transfer: those that agree on all axes but the transfer's. Without axes all devices are one group.
std::vector<std::vector<int>> groups_of(const Transfer& t, const std::vector<int>& numbers) {
  const int n = static_cast<int>(numbers.size());
  std::map<int, std::vector<int>> groups;  // by first position
  for (int p = 0; p < n; p++) {
    int first = t.axes.empty() ? 0 : p;
    for (const SubAxis& a : t.axes) first -= static_cast<int>(coordinate(a, p, n)) * (n / (a.pre * a.size));
    groups[first].push_back(numbers[static_cast<std::size_t>(p)]);
  }
  std::vector<std::vector<int>> all;
  all.reserve(groups.size());
  for (auto& [first, ids] : groups) all.push_back(std::move(ids));
  return all;
}

/// How many groups of the previous level one kind of link joins.
struct Level {
  double ways;
  const Link* link;
};
std::vector<Level> levels_of(const std::vector<int>& ids, const Machine& m) {
  std::vector<Level> levels;
  auto below = static_cast<double>(ids.size());
  for (const Link& l : m.links) {
    std::set<int> groups;
    for (const int id : ids) groups.insert(id / l.devices);
    const auto here = static_cast<double>(groups.size());
    if (here < below) levels.push_back({below / here, &l});
    below = here;
  }
  return levels;
}

/// An all-gather in a group whose devices each have 1/g of `bytes`: farthest links first, while shards are small.
double gather_seconds(double bytes, const std::vector<Level>& levels, double runs) {
  double part = bytes, seconds = 0;
  for (const Level& l : levels) part /= l.ways;
  for (auto l = levels.rbegin(); l != levels.rend(); ++l) {
    seconds +=
        part * (l->ways - 1) / l->link->bandwidth + runs * l->link->latency * std::ceil(std::log2(l->ways));
    part *= l->ways;
  }
  return seconds;
}

/// The time of one of the groups.
double seconds_of(const Transfer& t, const std::vector<int>& ids, const Machine& m) {
  const std::vector<Level> levels = levels_of(ids, m);
  const auto bytes = static_cast<double>(t.bytes), runs = static_cast<double>(t.runs),
             g = static_cast<double>(ids.size());
  if (levels.empty()) return 0;
  const double whole = bytes * g / (g - 1);  // bytes of the full value, at the end or the beginning
  switch (t.kind) {
    case TransferKind::all_reduce: return 2 * gather_seconds(whole / 2, levels, runs);
    case TransferKind::all_gather:
    case TransferKind::reduce_scatter: return gather_seconds(whole, levels, runs);
    case TransferKind::all_to_all: {  // equal bytes from every other device
      double near = 1, seconds = 0;
      for (const Level& l : levels) {
        seconds += bytes * near * (l.ways - 1) / (g - 1) / l.link->bandwidth + runs * l.link->latency;
        near *= l.ways;
      }
      return seconds;
    }
    default: {
      double slowest = 0, latency = 0;
      for (const Level& l : levels) {
        slowest = std::max(slowest, bytes / l.link->bandwidth);
        latency = std::max(latency, l.link->latency);
      }
      return slowest + runs * latency;
    }
  }
}

}  // namespace

std::vector<int> numbers_on(const Machine& m, const std::vector<Device>& devices) {
  std::vector<int> numbers;
  numbers.reserve(devices.size());
  for (const Device& d : devices)
    numbers.push_back(d.platform == m.name ? d.id : static_cast<int>(numbers.size()));
  return numbers;
}

double transfer_seconds(const Transfer& t, const std::vector<int>& numbers, const Machine& m) {
  double most = 0;
  if (t.bytes > 0)
    for (const std::vector<int>& group : groups_of(t, numbers))
      most = std::max(most, seconds_of(t, group, m));
  return most;
}

double described_seconds(const Transfer& t, const DeviceOrder& order) {
  const Machine* const m = described_machine(order.devices()[0].platform);
  return m ? transfer_seconds(t, numbers_on(*m, order.devices()), *m) : 0;
}

}  // namespace shardarray
