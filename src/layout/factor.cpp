#include "layout/factor.h"

#include <algorithm>

#include "layout/axes.h"

namespace shardarray {
namespace {

// first[i]: the lowest position that holds tile i of dimension d and tile 0 of all others, or -1.
std::vector<int> first_positions(const std::vector<std::vector<std::int64_t>>& index, std::size_t d,
                                 std::int64_t count, int n) {
  std::vector<int> first(static_cast<std::size_t>(count), -1);
  for (int p = n - 1; p >= 0; p--) {
    bool others_zero = true;
    for (std::size_t e = 0; e < index.size(); e++) others_zero &= e == d || index[e][p] == 0;
    if (others_zero) first[index[d][p]] = p;
  }
  return first;
}

// `first` as mixed radix, most significant digit first. The least significant digit is a run first[j] = j * stride; the next one continues
// at the run's end, in units of its length.
std::optional<AxisList> digits(const std::vector<int>& first, int n) {
  AxisList reversed;
  const auto count = static_cast<std::int64_t>(first.size());
  if (first[0] != 0) return std::nullopt;
  for (std::int64_t unit = 1; unit < count;) {
    const std::int64_t stride = first[unit];
    std::int64_t q = 1;
    while (unit * q < count && first[unit * q] == q * stride) q++;
    if (stride <= 0 || q == 1 || (count / unit) % q != 0 || n % (stride * q) != 0) return std::nullopt;
    reversed.push_back({static_cast<std::int32_t>(n / (stride * q)), static_cast<std::int32_t>(q)});
    unit *= q;
  }
  std::ranges::reverse(reversed);
  return reversed;
}

// Whether the candidate has the placement's tile at every position.
bool holds(const std::vector<AxisList>& dims, const std::vector<std::vector<std::int64_t>>& index, int n) {
  AxisList all;
  for (const AxisList& axes : dims) all.insert(all.end(), axes.begin(), axes.end());
  if (!disjoint(all, n)) return false;
  for (std::size_t d = 0; d < dims.size(); d++)
    for (int p = 0; p < n; p++)
      if (coordinate(dims[d], p, n) != index[d][p]) return false;
  return true;
}

// The placement's tile indices by position in `order`.
std::vector<std::vector<std::int64_t>> reordered(const Placement& placement, const DeviceOrder* order) {
  if (order == placement.order.get()) return placement.index;
  auto index = placement.index;
  for (int p = 0; p < order->size(); p++) {
    const int old = placement.order->position(order->devices()[p]);
    for (std::size_t d = 0; d < index.size(); d++) index[d][p] = placement.index[d][old];
  }
  return index;
}

// The layout of these dimensions; for partial sums the last one holds the summands.
const Layout* layout_of_dims(const DeviceOrder* order, std::vector<AxisList> dims, Reducer reducer) {
  if (reducer == Reducer::none) return Layout::of(order, std::move(dims));
  AxisList summands = std::move(dims.back());
  dims.pop_back();
  return Layout::of(order, std::move(dims), std::move(summands), reducer);
}

// Tiles row-major, devices ascending within a tile: always possible.
LayoutRef private_layout(const Placement& placement) {
  const DeviceOrder* sorted = placement.order->sorted();
  const auto index = reordered(placement, sorted);
  std::vector<std::vector<Device>> members(static_cast<std::size_t>(num_elements(placement.counts)));
  for (int p = 0; p < sorted->size(); p++) {
    std::int64_t tile = 0;
    for (std::size_t d = 0; d < index.size(); d++) tile = tile * placement.counts[d] + index[d][p];
    members[tile].push_back(sorted->devices()[p]);
  }
  std::vector<Device> devices;
  for (const auto& tile : members) devices.insert(devices.end(), tile.begin(), tile.end());
  std::vector<AxisList> dims;
  std::int32_t pre = 1;
  for (std::int64_t count : placement.counts) {
    dims.push_back({{pre, static_cast<std::int32_t>(count)}});
    pre *= static_cast<std::int32_t>(count);
  }
  const OrderRef order = DeviceOrder::shared(std::move(devices));
  return layout_of_dims(order.get(), std::move(dims), placement.reducer)->ref();
}

}  // namespace

const Layout* factor(const Placement& placement, const DeviceOrder* order) {
  const int n = order->size();
  const auto index = reordered(placement, order);
  std::vector<AxisList> dims;
  for (std::size_t d = 0; d < index.size(); d++) {
    const auto axes = digits(first_positions(index, d, placement.counts[d], n), n);
    if (!axes) return nullptr;
    dims.push_back(*axes);
  }
  if (!holds(dims, index, n)) return nullptr;
  return layout_of_dims(order, std::move(dims), placement.reducer);
}

LayoutRef canonical_layout(const Placement& placement) {
  const Layout* const sorted = factor(placement, placement.order->sorted());
  return sorted ? sorted->ref() : private_layout(placement);
}

Placement placement_of(const Layout& layout) {
  Placement out{layout.order()->ref(), {}, {}, layout.reducer()};
  const int n = layout.order()->size();
  const auto add = [&](const AxisList& axes) {
    out.counts.push_back(product(axes));
    auto& tiles = out.index.emplace_back();
    for (int p = 0; p < n; p++) tiles.push_back(coordinate(axes, p, n));
  };
  for (const AxisList& axes : layout.dims()) add(axes);
  if (layout.reducer() != Reducer::none) add(layout.unreduced());
  return out;
}

const Layout* in_order(const Layout* layout, const DeviceOrder* order) {
  if (layout->order() == order) return layout;
  if (layout->order()->sorted() != order->sorted()) return nullptr;
  return factor(placement_of(*layout), order);
}

}  // namespace shardarray
