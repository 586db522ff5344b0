#include "compile/gather_loops.h"

#include <algorithm>
#include <map>

#include "base/at.h"
#include "base/sizes.h"
#include "compile/in_place.h"
#include "compile/step_kind.h"
#include "runtime/step_ranges.h"

namespace shardarray {
namespace {

// That a loop reads and makes: larger ones pay for their launches.
constexpr std::int64_t most_bytes = 1 << 20;
constexpr std::size_t most_items = 256;  // of a step

// Read or written in the order of the domain, or one element everywhere.
bool is_in_order(const KernelAccess& a, std::int32_t rank) {
  const auto& dims = a.map.dims;
  const bool is_one =
      std::all_of(dims.begin(), dims.end(), [](const IndexSum& s) { return s.terms.empty(); });
  bool is_same = std::ssize(dims) == rank;
  for (int d = 0; is_same && d < rank; d++) is_same = at(dims, d).dimension() == d;
  return is_one || is_same;
}

bool is_small(const GroupKernel& k, const Partition& p) {
  std::int64_t bytes = 0;
  for (const KernelAccess& a : k.args) bytes = add_sizes(bytes, bytes_of(at(p.values, a.value).type));
  return bytes <= most_bytes;
}

class Gathering {
 public:
  Gathering(const Fusion& f, const Partition& p, const FlatGraph& g)
      : first_reader_(f.groups.size(), static_cast<int>(f.groups.size())) {
    const std::vector<Group>& groups = f.groups;
    std::vector<StepKind> kinds;
    kinds.reserve(p.steps.size());
    for (int s = 0; s < static_cast<int>(p.steps.size()); s++) kinds.push_back(step_kind(p, g, s));
    std::map<int, int> writer;  // memory -> group
    for (int k = 0; k < static_cast<int>(groups.size()); k++)
      for (const int v : at(groups, k).roots) writer.emplace(v, k);
    std::map<int, int> written_over;  // memory -> the next group that may do so: what reads it comes before
    for (int k = static_cast<int>(groups.size()) - 1; k >= 0; k--) {
      for (const int s : at(groups, k).steps)
        for (const int v : at(p.steps, s).in)
          for (const int m : memories_before(p, f.storage, kinds, v, at(f.storage, v).memory)) {
            if (const auto w = writer.find(m); w != writer.end() && w->second != k)
              at(first_reader_, w->second) = k;
            if (const auto w = written_over.find(m); w != written_over.end())
              at(first_reader_, k) = std::min(at(first_reader_, k), w->second);
          }
      if (at(groups, k).loop) continue;
      const LocalStep& step = at(p.steps, at(groups, k).steps[0]);
      for (const InPlace& x : in_place_of(step, p, g, f.storage))
        written_over[at(f.storage, step.in[x.operand]).memory] = k;
    }
  }

  // The order of the groups: those of `alike` in front of the next one of them.
  std::vector<int> order(const std::vector<std::vector<int>>& alike) const {
    std::vector<int> anchor(first_reader_.size());
    for (int k = 0; k < static_cast<int>(anchor.size()); k++) at(anchor, k) = k;
    for (const std::vector<int>& all : alike)
      for (std::size_t k = all.size() - 1; k-- > 0;) {
        const int next = at(anchor, all[k + 1]);
        if (at(first_reader_, all[k]) >= next) at(anchor, all[k]) = next;
      }
    std::vector<int> sorted(first_reader_.size());
    for (int k = 0; k < static_cast<int>(sorted.size()); k++) at(sorted, k) = k;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [&](int a, int b) { return at(anchor, a) < at(anchor, b); });
    return sorted;
  }

 private:
  std::vector<int> first_reader_;  // by group
};

// The loop as one of one dimension: where its arguments allow it, which lie in a row then, whatever shapes they have.
Loop flattened(const Loop& loop) {
  if (loop.kernel->outer == 1 || !is_pointwise(*loop.kernel)) return loop;
  for (const Loop::Item& item : loop.items)
    for (const LoopArg& a : item.args)
      if (!is_packed(item.extents, a.strides) && !is_one_element(a)) return loop;
  Loop r = loop;
  Kernel flat = *loop.kernel;
  flat.outer = 1;
  r.kernel = std::make_shared<const Kernel>(std::move(flat));
  for (Loop::Item& item : r.items) {
    for (LoopArg& a : item.args) a.strides = {is_one_element(a) ? 0 : 1};
    item.extents = {num_elements(item.extents)};
    item.start = {0};
  }
  return r;
}

}  // namespace

void bring_together(Fusion& f, std::vector<GroupKernel>& kernels, const Partition& p, const FlatGraph& g) {
  std::vector<Group>& groups = f.groups;
  std::vector<std::vector<int>> alike;  // ascending
  std::vector<Kernel> known;            // of each
  for (int k = 0; k < static_cast<int>(groups.size()); k++) {
    const GroupKernel& of = at(kernels, k);
    if (!at(groups, k).loop || !is_small(of, p)) continue;
    Kernel kernel = of.kernel;
    const auto in_order = [&](const KernelAccess& a) { return is_in_order(a, of.kernel.outer); };
    if (is_pointwise(kernel) && std::all_of(of.args.begin(), of.args.end(), in_order)) kernel.outer = 1;
    const auto same = std::find(known.begin(), known.end(), kernel) - known.begin();
    if (same == std::ssize(known)) known.push_back(std::move(kernel)), alike.emplace_back();
    at(alike, static_cast<int>(same)).push_back(k);
  }
  if (std::all_of(alike.begin(), alike.end(), [](const auto& all) { return all.size() < 2; })) return;
  std::vector<Group> moved;
  std::vector<GroupKernel> with_them;
  for (const int k : Gathering(f, p, g).order(alike)) {
    moved.push_back(std::move(at(groups, k)));
    with_them.push_back(std::move(at(kernels, k)));
  }
  groups = std::move(moved);
  kernels = std::move(with_them);
}

bool take_items(Step& step, const Step& next) {
  const auto* const first = std::get_if<Loop>(&step.body);
  const auto* const second = std::get_if<Loop>(&next.body);
  if (!first || !second || step.flush_denormals != next.flush_denormals ||
      first->items.size() + second->items.size() > most_items)
    return false;
  if (first->kernel->code != second->kernel->code) return false;  // before anything is copied
  Loop to = flattened(*first);
  const Loop from = flattened(*second);
  if (!(*to.kernel == *from.kernel)) return false;
  std::vector<ItemRanges> there;
  there.reserve(to.items.size());
  for (const Loop::Item& item : to.items) there.push_back(ranges_of(to, item));
  const auto meet = [](const MemoryRanges& a, const MemoryRanges& b) {
    return std::any_of(a.begin(), a.end(), [&](const MemoryRange& x) {
      return std::any_of(b.begin(), b.end(), [&](const MemoryRange& y) { return overlap(x, y); });
    });
  };
  for (const Loop::Item& item : from.items) {
    const ItemRanges r = ranges_of(from, item);
    for (const ItemRanges& t : there)
      if (meet(r.writes, t.reads) || meet(r.writes, t.writes) || meet(r.reads, t.writes)) return false;
  }
  to.items.insert(to.items.end(), from.items.begin(), from.items.end());
  step.body = std::move(to);
  return true;
}

}  // namespace shardarray
