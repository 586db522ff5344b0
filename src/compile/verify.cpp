// Checks of what passes hand to each other. In a finished program every byte that a step reads was written before, every result is written
// completely, and items of one step do not disturb each other.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <variant>

#include "base/at.h"
#include "compile/passes.h"
#include "runtime/step_ranges.h"
#include "shardarray/error.h"

namespace shardarray {

namespace {

// The bytes of a base that were written: disjoint intervals, by their starts.
class Written {
 public:
  void add(std::uint64_t lo, std::uint64_t hi) {
    if (lo >= hi) return;
    auto it = parts_.upper_bound(lo);
    if (it != parts_.begin() && std::prev(it)->second >= lo) --it;
    while (it != parts_.end() && it->first <= hi) {
      lo = std::min(lo, it->first);
      hi = std::max(hi, it->second);
      it = parts_.erase(it);
    }
    parts_[lo] = hi;
  }
  bool has(std::uint64_t lo, std::uint64_t hi) const {
    if (lo >= hi) return true;
    auto it = parts_.upper_bound(lo);
    return it != parts_.begin() && std::prev(it)->second >= hi;
  }

 private:
  std::map<std::uint64_t, std::uint64_t> parts_;
};

[[noreturn]] void refuse(const std::string& what) {
  throw InternalError(fmt::format("verify: {}. Please report this.", what));
}
std::string text_of(const MemoryRange& r) {
  return fmt::format("bytes [{}, {}) of base {}", r.lo, r.hi, r.base);
}

class ProgramCheck {
 public:
  explicit ProgramCheck(const Program& p) : p_(p), written_(p.base_count), size_(p.base_count) {}

  void run() {
    for (std::size_t d = 0; d < p_.scratch_bytes.size(); d++) size_[d] = p_.scratch_bytes[d];
    for (const std::vector<Port>* ports : {&p_.inputs, &p_.outputs})
      for (const Port& port : *ports)
        for (std::size_t k = 0; k < port.bases.size(); k++) {
          if (port.bases[k] >= p_.base_count)
            refuse(fmt::format("plan: base {} of {} is an argument's or a result's", port.bases[k],
                               p_.base_count));
          size_[port.bases[k]] = port.bytes[k];
        }
    for (const Port& port : p_.inputs)
      for (std::size_t k = 0; k < port.bases.size(); k++) written_[port.bases[k]].add(0, port.bytes[k]);
    for (const Step& s : p_.steps) {
      label_ = &s.label;
      std::visit([&](const auto& body) { step(body); }, s.body);
    }
    for (const Port& port : p_.outputs)
      for (std::size_t k = 0; k < port.bases.size(); k++)
        if (!written_[port.bases[k]].has(0, port.bytes[k]))
          refuse(fmt::format("a result of {} bytes behind base {} is not written whole", port.bytes[k],
                             port.bases[k]));
  }

 private:
  template <class Body> void step(const Body& body) {
    std::vector<ItemRanges> items;
    for (const auto& item : body.items) items.push_back(ranges_of(body, item));
    for (const ItemRanges& r : items) {
      for (const MemoryRange& x : r.reads) {
        inside(x);
        if (!written_[x.base].has(x.lo, x.hi))
          refuse(fmt::format("{} reads {}, which nobody has written", *label_, text_of(x)));
      }
      for (const MemoryRange& x : r.writes) inside(x);
    }
    check_apart(items);
    for (const ItemRanges& r : items)
      for (const MemoryRange& x : r.writes) written_[x.base].add(x.lo, x.hi);
  }

  void inside(const MemoryRange& r) const {
    if (r.base >= p_.base_count || r.lo > r.hi || r.hi > size_[r.base])
      refuse(fmt::format("{} touches {}, which has {} bytes", *label_, text_of(r),
                         r.base < p_.base_count ? size_[r.base] : 0));
  }

  // No other item touches what one item writes.
  void check_apart(const std::vector<ItemRanges>& items) const {
    struct Touch {
      MemoryRange range;
      std::size_t item;
      bool writes;
    };
    std::vector<Touch> all;
    for (std::size_t k = 0; k < items.size(); k++) {
      for (const MemoryRange& r : items[k].reads)
        if (r.lo < r.hi) all.push_back({r, k, false});
      for (const MemoryRange& r : items[k].writes)
        if (r.lo < r.hi) all.push_back({r, k, true});
    }
    std::sort(all.begin(), all.end(), [](const Touch& a, const Touch& b) {
      return std::pair(a.range.base, a.range.lo) < std::pair(b.range.base, b.range.lo);
    });
    for (std::size_t k = 0; k < all.size(); k++)
      for (std::size_t j = k + 1; j < all.size() && overlap(all[k].range, all[j].range); j++)
        if (all[k].item != all[j].item && (all[k].writes || all[j].writes))
          refuse(fmt::format("two items of {} touch {}", *label_, text_of(all[j].range)));
  }

  const Program& p_;
  std::vector<Written> written_;
  std::vector<std::uint64_t> size_;
  const std::string* label_ = nullptr;
};

}  // namespace

void verify(const Propagation& p, const FlatGraph& g) {
  if (p.rules.size() != g.nodes.size() || p.preferences.dims.size() != g.types.size() ||
      p.preferences.closed.size() != g.types.size())
    refuse("propagate: not every node has a rule, and every value a preference");
  for (std::size_t v = 0; v < g.types.size(); v++)
    if (p.preferences.dims[v].size() != g.types[v].shape.size())
      refuse(fmt::format("propagate: the preference of %{} has {} dimensions, the value {}", v,
                         p.preferences.dims[v].size(), g.types[v].shape.size()));
}

void verify(const Partition& p, const FlatGraph& g, const CompileInput& in) {
  const std::vector<const Layout*>& asked = in.outputs;
  for (std::size_t i = 0; i < p.steps.size(); i++)
    for (int v : p.steps[i].in)
      if (p.values[static_cast<std::size_t>(v)].step >= static_cast<int>(i))
        refuse(fmt::format(
            "partition: step {} ({}) uses a value that is made later", i,
            p.steps[i].node < 0 ? "transfer" : g.nodes[static_cast<std::size_t>(p.steps[i].node)].op->name));
  for (std::size_t k = 0; k < p.outputs.size(); k++) {
    const bool may_be_partial = (k < asked.size() && asked[k] && !asked[k]->unreduced().empty()) ||
                                may_leave_partial(at(g.nodes, at(g.producer, g.outputs[k])), in);
    if (!at(p.values, p.outputs[k]).layout->unreduced().empty() && !may_be_partial)
      refuse("partition: a partial sum leaves the program");
  }
}

void verify(const Fusion& f, const Partition& p) {
  std::vector<int> stored_by(p.values.size(), -1);
  for (std::size_t k = 0; k < f.groups.size(); k++)
    for (const int v : f.groups[k].roots) at(stored_by, v) = static_cast<int>(k);
  for (std::size_t k = 0; k < f.groups.size(); k++) {
    const Group& group = f.groups[k];
    const std::set<int> own(group.steps.begin(), group.steps.end());
    for (const int s : group.steps)
      for (const int v : at(p.steps, s).in) {
        const LocalValue& x = at(p.values, v);
        if (x.step < 0 || own.contains(x.step)) continue;
        const int memory = at(f.storage, v).memory;
        const bool input = memory >= 0 && at(p.values, memory).step < 0;
        if (memory < 0 ||
            (!input && (at(stored_by, memory) < 0 || at(stored_by, memory) >= static_cast<int>(k))))
          refuse(fmt::format("fuse: group {} reads local value %{}, which no earlier group stores", k, v));
      }
  }
}

void verify(const Program& p) { ProgramCheck(p).run(); }

}  // namespace shardarray
