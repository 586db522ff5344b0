#include "execute/machine_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "runtime/contraction.h"
#include "runtime/step_ranges.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

/// The devices of each group of a transfer: those that agree on all axes but its own. Without axes all are one.
std::vector<std::vector<int>> groups_of(const Transfer& t, const std::vector<int>& numbers) {
  const int n = static_cast<int>(numbers.size());
  std::map<int, std::vector<int>> groups;  // by its first position
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
                of_device[static_cast<std::size_t>(item.device)] += seconds(body, item) + start(body);
          },
          s.body);
    return called + *std::ranges::max_element(of_device);
  }

 private:
  template <class Body> double start(const Body&) const { return m_.step_latency; }
  double start(const Exchange& x) const { return x.transfer >= 0 ? 0 : m_.step_latency; }
  double seconds_of(double bytes) const { return bytes / m_.memory_bandwidth; }
  template <class Body, class Item> double memory(const Body& body, const Item& item) const {
    const ItemRanges r = ranges_of(body, item);
    return seconds_of(bytes_of(r.reads) + bytes_of(r.writes));
  }
  /// Of a tile what the loop's points touch.
  double seconds(const Loop& loop, const Loop::Item& item) const {
    double bytes = 0;
    for (std::size_t k = 0; k < item.args.size(); k++) {
      const LoopArg& a = item.args[k];
      const KernelArg& of = loop.kernel->args[k];
      auto touched = static_cast<double>(itemsize(of.type));
      for (std::size_t d = 0; d < item.extents.size(); d++)
        if (of.indirect || a.strides[d] != 0) touched *= static_cast<double>(item.extents[d]);
      bytes += std::min(touched, static_cast<double>(a.bytes));
    }
    return seconds_of(bytes);
  }
  /// `count` products of m x k by k x n.
  double product(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t count, double flops) const {
    const auto [rows, columns, terms] = m_.product_padding;
    return 2 * (static_cast<double>(m) + rows) * (static_cast<double>(n) + columns) *
           (static_cast<double>(k) + terms) * static_cast<double>(count) / flops;
  }
  double seconds(const Gemm& g, const Gemm::Item& i) const {
    return std::max(memory(g, i), product(i.m, i.n, i.k, i.batch, flops_of(m_, g.in, g.tf32)));
  }
  double seconds(const LibraryCall& x, const LibraryCall::Item& item) const {
    if (x.name != "conv") return memory(x, item);
    const Contraction c = Contraction::of(item.params);
    return std::max(memory(x, item), product(size_of(c.points), size_of(c.features), size_of(c.summed),
                                             size_of(c.groups), flops_of(m_, x.in_types[0], false)));
  }
  double seconds(const Exchange& x, const Exchange::Item& item) const {
    if (x.transfer >= 0) return 0;  // it is a transfer
    double elements = 0;
    for (const Exchange::Piece& p : item.pieces)
      elements += static_cast<double>(num_elements(p.extents)) * static_cast<double>(p.sources.size() + 1);
    return seconds_of(elements * static_cast<double>(itemsize(x.dtype)));
  }
  const Machine& m_;
};

}  // namespace

/// Of the groups' transfers one.
static double seconds_of(const Transfer& t, const std::vector<int>& ids, const Machine& m) {
  const std::vector<Level> levels = levels_of(ids, m);
  const auto bytes = static_cast<double>(t.bytes), runs = static_cast<double>(t.runs),
             g = static_cast<double>(ids.size());
  if (levels.empty()) return 0;
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

MachineTimes::MachineTimes(const Program& program, const Machine& m) : program_(program), machine_(m) {
  const std::vector<Device>& devices = program.order->devices();
  if (static_cast<int>(devices.size()) > m.device_count)
    throw DeviceError(fmt::format(
        "Explanation::on: the program runs on {} devices, and '{}' has {}. Take a machine that has as many.",
        devices.size(), m.name, m.device_count));
  for (const Device& d : devices)  // a machine's own devices have numbers, others are its first ones
    numbers_.push_back(d.platform == m.name ? d.id : static_cast<int>(numbers_.size()));
}

double MachineTimes::seconds(const Transfer& t) const {
  double most = 0;
  if (t.bytes > 0)
    for (const std::vector<int>& group : groups_of(t, numbers_))
      most = std::max(most, seconds_of(t, group, machine_));
  return most;
}

double MachineTimes::compute_seconds() const { return Steps(machine_).seconds(program_); }

}  // namespace shardarray
