// Interning of device lists.
#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <tuple>

#include "base/intern_table.h"
#include "layout/layout.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

bool by_id(const Device& a, const Device& b) {
  return std::tie(a.platform, a.id, a.memory, a.process_index) <
         std::tie(b.platform, b.id, b.memory, b.process_index);
}

struct ByIds {
  bool operator()(const std::vector<Device>& a, const std::vector<Device>& b) const {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), by_id);
  }
};

using Orders = InternTable<std::vector<Device>, DeviceOrder, ByIds>;
Orders& orders_made() {
  static Orders& t = *new Orders;  // never destroyed
  return t;
}

const DeviceOrder* keep(OrderRef order) {
  static std::mutex mutex;
  static auto& kept = *new std::set<OrderRef>;
  const std::lock_guard lock(mutex);
  return kept.insert(std::move(order)).first->get();
}

bool are_first(const std::vector<Device>& devices) {
  for (std::size_t k = 0; k < devices.size(); k++)
    if (devices[k].id != static_cast<int>(k)) return false;
  return true;
}

}  // namespace

OrderRef DeviceOrder::shared(std::vector<Device> devices) {
  if (OrderRef found = orders_made().find(devices)) return found;
  auto ascending = devices;
  std::sort(ascending.begin(), ascending.end(), by_id);
  if (devices.empty() || std::adjacent_find(ascending.begin(), ascending.end()) != ascending.end())
    throw InternalError(
        fmt::format("DeviceOrder::of: {} devices, empty or with one twice. A device order lists distinct "
                    "devices. Please report this.",
                    devices.size()));
  if (ascending.front().platform != ascending.back().platform)
    throw DeviceError(
        fmt::format("devices: {} and {} are in one sharding. All devices of a sharding are of one platform. "
                    "Choose devices of one, and move arrays with device_put.",
                    to_string(ascending.front()), to_string(ascending.back())));
  const OrderRef sorted = ascending == devices ? nullptr : shared(std::move(ascending));
  OrderRef order = orders_made().get(
      devices, [&](const std::vector<Device>& list) { return OrderRef(new DeviceOrder(list, sorted)); });
  if (are_first(devices)) keep(order);  // one per size, in constant use
  return order;
}

const DeviceOrder* DeviceOrder::of(std::vector<Device> devices) { return keep(shared(std::move(devices))); }

std::size_t DeviceOrder::count() { return orders_made().size(); }

int DeviceOrder::position(const Device& d) const {
  // Most orders are 0, 1, 2, ...
  if (d.id >= 0 && d.id < size() && devices_[d.id] == d) return d.id;
  const auto it = std::find(devices_.begin(), devices_.end(), d);
  return it == devices_.end() ? -1 : static_cast<int>(it - devices_.begin());
}

}  // namespace shardarray
