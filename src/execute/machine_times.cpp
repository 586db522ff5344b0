#include "execute/machine_times.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "runtime/step_ranges.h"

namespace shardarray {
namespace {

/// The devices of one group of a transfer: those that agree on all other axes. All groups are alike but for where they lie.
std::vector<int> group_of(const Transfer& t, const DeviceOrder& order) {
  const int n = order.size();
  std::vector<int> positions{0};
  for (const SubAxis& a : t.axes) {
    const int stride = n / (a.pre * a.size);
    const std::size_t before = positions.size();
    for (int digit = 1; digit < a.size; digit++)
      for (std::size_t k = 0; k < before; k++) positions.push_back(positions[k] + digit * stride);
  }
  std::vector<int> ids;
  for (const int p : positions) ids.push_back(order.devices()[static_cast<std::size_t>(p)].id);
  return ids;
}

/// Of a group, what each kind of links joins: so many groups of the links before.
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

/// All shards to all of a group, of which each device has 1/g of `bytes`: the farthest first, while shards are small.
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

double bytes_of(const MemoryRanges& ranges) {
  double bytes = 0;
  for (const MemoryRange& r : ranges) bytes += static_cast<double>(r.hi - r.lo);
  return bytes;
}

class Steps {
 public:
  explicit Steps(const Machine& m) : m_(m) {}

  double seconds(const Program& program) const {
    std::vector<double> of_device(static_cast<std::size_t>(program.order->size()), 0);
    double called = 0;
    for (const Step& s : program.steps)
      std::visit(
          [&]<class Body>(const Body& body) {
            if constexpr (std::is_same_v<Body, ProgramCall>)
              called += static_cast<double>(body.trip) * seconds(*body.program);
            else if constexpr (std::is_same_v<Body, ProgramChoice>) {
              double most = 0;
              for (const ProgramCall& b : body.branches) most = std::max(most, seconds(*b.program));
              called += most;
            } else if constexpr (std::is_same_v<Body, ProgramLoop>)
              called += seconds(*body.condition().program) + seconds(*body.body().program);
            else
              for (const auto& item : body.items)
                of_device[static_cast<std::size_t>(item.device)] += seconds(body, item);
          },
          s.body);
    return called + *std::ranges::max_element(of_device);
  }

 private:
  template <class Body, class Item> double memory(const Body& body, const Item& item) const {
    const ItemRanges r = ranges_of(body, item);
    return (bytes_of(r.reads) + bytes_of(r.writes)) / m_.memory_bandwidth;
  }
  double seconds(const Loop& loop, const Loop::Item& item) const { return memory(loop, item); }
  double seconds(const Gemm& g, const Gemm::Item& i) const {
    const double operations = 2.0 * static_cast<double>(i.m) * static_cast<double>(i.n) *
                              static_cast<double>(i.k) * static_cast<double>(i.batch);
    return std::max(memory(g, i), operations / flops_of(m_, g.in, g.tf32));
  }
  double seconds(const LibraryCall& x, const LibraryCall::Item& item) const { return memory(x, item); }
  double seconds(const Exchange& x, const Exchange::Item& item) const {
    return x.transfer >= 0 ? 0 : memory(x, item);  // else it is a transfer
  }
  const Machine& m_;
};

}  // namespace

double seconds_of(const Transfer& t, const DeviceOrder& order, const Machine& m) {
  const std::vector<int> ids = group_of(t, order);
  const std::vector<Level> levels = levels_of(ids, m);
  const auto bytes = static_cast<double>(t.bytes), runs = static_cast<double>(t.runs),
             g = static_cast<double>(ids.size());
  if (levels.empty() || t.bytes == 0) return 0;
  const double whole = bytes * g / (g - 1);  // of what each device has at last, or had at first
  switch (t.kind) {
    case TransferKind::all_reduce: return 2 * gather_seconds(whole / 2, levels, runs);
    case TransferKind::all_gather:
    case TransferKind::reduce_scatter: return gather_seconds(whole, levels, runs);
    case TransferKind::all_to_all: {  // from every other device as much
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

double compute_seconds(const Program& program, const Machine& m) { return Steps(m).seconds(program); }

}  // namespace shardarray
