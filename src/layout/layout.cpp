#include "layout/layout.h"

#include <fmt/format.h>

#include <mutex>
#include <unordered_set>

#include "base/hash.h"
#include "layout/axes.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

std::uint64_t mix(std::uint64_t h, const AxisList& axes) {
  h = hash_mix(h, axes.size());
  for (SubAxis a : axes)
    h = hash_mix(hash_mix(h, static_cast<std::uint64_t>(a.pre)), static_cast<std::uint64_t>(a.size));
  return h;
}

}  // namespace

struct DeviceOrder::Layouts {
  struct Hash {
    std::size_t operator()(const Layout* l) const { return l->hash(); }
  };
  struct Equal {
    bool operator()(const Layout* a, const Layout* b) const {
      return a->dims() == b->dims() && a->unreduced() == b->unreduced() && a->reducer() == b->reducer();
    }
  };
  std::mutex mutex;
  std::unordered_set<const Layout*, Hash, Equal> layouts;
  std::vector<std::unique_ptr<const Layout>> made;
};

DeviceOrder::DeviceOrder(std::vector<Device> devices, OrderRef sorted)
    : devices_(std::move(devices)), sorted_(std::move(sorted)), layouts_(std::make_unique<Layouts>()) {}
DeviceOrder::~DeviceOrder() = default;

const Layout* Layout::of(const DeviceOrder* order, std::vector<AxisList> dims, AxisList unreduced,
                         Reducer reducer) {
  Layout l;
  AxisList all = unreduced;
  for (AxisList& axes : dims) {
    all.insert(all.end(), axes.begin(), axes.end());
    axes = merged(axes);
  }
  l.order_ = order;
  l.dims_ = std::move(dims);
  l.unreduced_ = sorted_merged(std::move(unreduced));
  l.reducer_ = l.unreduced_.empty() ? Reducer::none : reducer;
  if (!disjoint(all, order->size()) || (l.reducer_ == Reducer::none && !l.unreduced_.empty()))
    throw InternalError(
        fmt::format("Layout::of: {} over {} devices. Sub-axes must not overlap, must divide the devices, and "
                    "unreduced ones need a reducer. Please report this.",
                    l.to_string(), order->size()));
  std::uint64_t h = hash_mix(reinterpret_cast<std::uintptr_t>(order), static_cast<std::uint64_t>(l.reducer_));
  for (const AxisList& axes : l.dims_) h = mix(h, axes);
  l.hash_ = mix(h, l.unreduced_);

  DeviceOrder::Layouts& t = *order->layouts_;
  const std::lock_guard lock(t.mutex);
  const auto found = t.layouts.find(&l);
  if (found != t.layouts.end()) return *found;
  t.made.push_back(std::make_unique<const Layout>(std::move(l)));
  return *t.layouts.insert(t.made.back().get()).first;
}

const Layout* Layout::replicated(const DeviceOrder* order, int rank) {
  return of(order, std::vector<AxisList>(static_cast<std::size_t>(rank)));
}

std::int64_t Layout::tiles(int d) const { return product(dims_[d]); }

std::int64_t Layout::tile_index(int d, int p) const { return coordinate(dims_[d], p, order_->size()); }

std::int64_t summand_index(const Layout& layout, int p) {
  return coordinate(layout.unreduced(), p, layout.order()->size());
}

bool Layout::is_fully_replicated() const {
  for (const AxisList& axes : dims_)
    if (!axes.empty()) return false;
  return unreduced_.empty();
}

std::string Layout::to_string() const {
  std::vector<std::string> parts;
  for (const AxisList& axes : dims_) parts.push_back(shardarray::to_string(axes));
  std::string s = fmt::format("[{}]", fmt::join(parts, ", "));
  if (!unreduced_.empty()) s += " U" + shardarray::to_string(unreduced_);
  if (!unreduced_.empty() && reducer_ != Reducer::sum) s += fmt::format(" {}", name(reducer_));
  return s;
}

}  // namespace shardarray
