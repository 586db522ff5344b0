#include "compile/gather_loops.h"

#include <algorithm>

#include "base/at.h"
#include "base/sizes.h"
#include "compile/group_order.h"
#include "runtime/step_ranges.h"

namespace shardarray {
namespace {

// Read and written by a loop; larger loops are worth their launch.
constexpr std::int64_t most_bytes = 1 << 20;
constexpr std::size_t most_items = 256;  // per step

// Whether it is accessed in the order of the domain, or is one element everywhere.
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

// The loop with one dimension, if its arguments allow it: they are contiguous, so the kernel suits any shape.
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

void bring_together(Fusion& f, std::vector<GroupKernel>& kernels, const Partition& p, const FlatGraph& g,
                    const CompileInput& in) {
  std::vector<Group>& groups = f.groups;
  std::vector<std::vector<int>> alike;  // ascending
  std::vector<Kernel> known;            // the kernel of each
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
  GroupOrder order(f, p, g, in);
  order.bring_together(alike);
  for (const int k : order.order()) {
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
