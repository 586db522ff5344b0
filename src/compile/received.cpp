#include "compile/received.h"

#include <algorithm>

#include "base/at.h"
#include "base/sizes.h"

namespace shardarray {

void set_received(Transfer& t, std::vector<std::int64_t> each) {
  const bool is_same = std::ranges::all_of(each, [&](std::int64_t n) { return n == t.bytes; });
  t.received = is_same ? std::vector<std::int64_t>() : std::move(each);
}

void add_received(Transfer& to, const Transfer& t) {
  if (to.received.empty() && t.received.empty()) {
    to.bytes = add_sizes(to.bytes, t.bytes);
    return;
  }
  if (to.received.empty()) to.received.assign(t.received.size(), to.bytes);
  for (std::size_t p = 0; p < to.received.size(); p++)
    to.received[p] = add_sizes(to.received[p], t.received.empty() ? t.bytes : t.received[p]);
  to.bytes = std::ranges::max(to.received);
}

std::int64_t received_bytes(const Partition& p) {
  std::int64_t bytes = 0;
  for (const Transfer& t : p.transfers) bytes = add_sizes(bytes, t.bytes);
  return bytes;
}

std::vector<Transfer> transfers_in_order(const Partition& p, const DeviceOrder& order) {
  std::vector<Transfer> all = p.transfers;
  for (const LocalStep& s : p.steps) {
    if (s.transfer < 0) continue;
    const DeviceOrder& own = *at(p.values, s.out[0]).layout->order();
    const std::vector<std::int64_t>& received = at(p.transfers, s.transfer).received;
    for (std::size_t k = 0; &own != &order && k < received.size(); k++)
      at(at(all, s.transfer).received, order.position(own.devices()[k])) = received[k];
  }
  return all;
}

}  // namespace shardarray
