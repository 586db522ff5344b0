// Interning of device lists.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>

#include "layout/layout.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

bool by_id(const Device& a, const Device& b) {
  return std::tie(a.platform, a.id) < std::tie(b.platform, b.id);
}

struct ByIds {
  bool operator()(const std::vector<Device>& a, const std::vector<Device>& b) const {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), by_id);
  }
};

struct Orders {
  std::mutex mutex;
  std::map<std::vector<Device>, const DeviceOrder*, ByIds> orders;
};
// Never freed: layouts are used until the process ends.
Orders& orders_made() {
  static Orders& t = *new Orders;
  return t;
}

}  // namespace

const DeviceOrder* DeviceOrder::of(std::vector<Device> devices) {
  Orders& t = orders_made();
  {
    const std::lock_guard lock(t.mutex);
    const auto found = t.orders.find(devices);
    if (found != t.orders.end()) return found->second;
  }
  auto ascending = devices;
  std::sort(ascending.begin(), ascending.end(), by_id);
  if (devices.empty() || std::adjacent_find(ascending.begin(), ascending.end()) != ascending.end())
    throw InternalError(
        fmt::format("DeviceOrder::of: {} devices, empty or with one twice. A device order lists distinct "
                    "devices. Please report this.",
                    devices.size()));
  const bool is_sorted = ascending == devices;
  const DeviceOrder* sorted = is_sorted ? nullptr : of(std::move(ascending));
  const std::lock_guard lock(t.mutex);
  const DeviceOrder*& slot = t.orders[devices];
  if (!slot) {
    auto* order = new DeviceOrder;
    order->devices_ = std::move(devices);
    order->sorted_ = is_sorted ? order : sorted;
    slot = order;
  }
  return slot;
}

int DeviceOrder::position(const Device& d) const {
  // Most orders are 0, 1, 2, ...
  if (d.id >= 0 && d.id < size() && devices_[d.id] == d) return d.id;
  const auto it = std::find(devices_.begin(), devices_.end(), d);
  return it == devices_.end() ? -1 : static_cast<int>(it - devices_.begin());
}

}  // namespace shardarray
