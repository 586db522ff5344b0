// Values between host memory and devices, and between placements.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/host_memory.h"
#include "base/per_thread.h"
#include "base/sizes.h"
#include "execute/evaluate.h"
#include "execute/memory_for.h"
#include "runtime/devices.h"

namespace shardarray {

// The thread's last one is kept: what lies on one device is then spelled by one object.
struct LastSharding : std::optional<Sharding> {
  using optional::operator=;
};
static const Sharding& sharding_on(const Device& device) {
  auto& last = PerThread<LastSharding>::get();
  if (!last || last->device_assignment()[0] != device) last = SingleDeviceSharding(device);
  return *last;
}

ValueRef host_value(const void* data, const Type& t, const Device& device) {
  Backend& b = backend(device.platform);
  const auto bytes = static_cast<std::size_t>(bytes_of(t.shape, t.dtype));
  const Sharding& s = sharding_on(device);
  auto v = make_value(layout_of(s, static_cast<int>(t.shape.size())), s, false, true);
  memory_for([&] { v->buffers.push_back(b.allocate(local_index(device), bytes)); },
             [&] { return to_string(t) + " of the host"; });
  b.copy_from_host(v->buffers[0], data, bytes);
  return v;
}

ValueRef scalar_value(DType t, std::uint64_t bits, const Device& device) {
  ValueRef v = host_value(&bits, {{}, t}, device);
  v->number = true;
  return v;
}

namespace {

// Copies a box between two row-major arrays of which it is a part.
void copy_box(std::byte* to, const Box& to_tile, const std::byte* from, const Box& from_tile, const Box& box,
              std::size_t item) {
  if (box.empty()) return;
  const std::size_t rank = box.lo.size();
  std::int64_t row = rank == 0 ? 1 : box.size[rank - 1];
  Shape index = Shape::filled(rank, 0);
  auto offset = [&](const Box& tile) {
    std::int64_t o = 0;
    for (std::size_t d = 0; d < rank; d++) o = o * tile.size[d] + box.lo[d] - tile.lo[d] + index[d];
    return static_cast<std::size_t>(o) * item;
  };
  for (;;) {
    std::memcpy(to + offset(to_tile), from + offset(from_tile), static_cast<std::size_t>(row) * item);
    if (rank < 2) return;
    std::size_t d = rank - 1;
    while (d > 0 && ++index[d - 1] == box.size[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace

// Every part that another process has must be here as well.
static void check_addressable(const Value& v, const Type& t, const Instances& here) {
  const std::vector<Device>& devices = v.layout->order()->devices();
  for (std::size_t p = 0; p < here.of_position.size(); p++) {
    if (here.of_position[p] >= 0) continue;
    const Box tile = tile_of(*v.layout, t.shape, static_cast<int>(p));
    const bool known = tile.empty() || std::any_of(here.leader.begin(), here.leader.end(), [&](int own) {
                         return tile_of(*v.layout, t.shape, own) == tile;
                       });
    if (known) continue;
    throw DeviceError(fmt::format(
        "read: {} has a part on {}, which is of process {}; this is process {}. A process reads what its own "
        "devices hold. Read addressable_shards() in each process, or replicate the array first: "
        "device_put(x, sharding).",
        to_string(t), to_string(devices[p]), devices[p].process_index, process_index()));
  }
}

void gather_to_host(const Value& v, const Type& t, void* to) {
  wait(v.ready);
  const std::size_t item = itemsize(t.dtype);
  const Instances instances = addressable_instances(*v.layout, v.shared);
  if (v.buffers.size() < static_cast<std::size_t>(v.layout->order()->size()))
    check_addressable(v, t, instances);
  Backend& b = backend(v.layout->order()->devices()[0].platform);
  if (v.layout->is_fully_replicated() && !v.buffers.empty()) {
    b.copy_to_host(to, v.buffers[0], static_cast<std::size_t>(bytes_of(t.shape, t.dtype)));
    return;
  }
  std::vector<std::byte> piece;
  for (std::size_t i = 0; i < v.buffers.size(); i++) {
    const Box tile = tile_of(*v.layout, t.shape, instances.leader[i]);
    piece = host_bytes("gather", bytes_of(tile.size, t.dtype));
    b.copy_to_host(piece.data(), v.buffers[i], piece.size());
    copy_box(static_cast<std::byte*>(to), whole_box(t.shape), piece.data(), tile, tile, item);
  }
}

// Every piece cut out of the whole in host memory: between device sets.
static ValueRef scatter_from_host(const std::vector<std::byte>& whole, const Type& t, const Sharding& s) {
  const Layout* l = layout_of(s, static_cast<int>(t.shape.size()));
  const Instances instances = addressable_instances(*l, share_replicas());
  Backend& b = backend(l->order()->devices()[0].platform);
  auto v = make_value(l, s, true, share_replicas());
  std::vector<std::byte> piece;
  for (int leader : instances.leader) {
    const Box tile = tile_of(*l, t.shape, leader);
    piece = host_bytes("device_put", bytes_of(tile.size, t.dtype));
    copy_box(piece.data(), tile, whole.data(), whole_box(t.shape), tile, itemsize(t.dtype));
    const Device& device = l->order()->devices()[static_cast<std::size_t>(leader)];
    memory_for([&] { v->buffers.push_back(b.allocate(local_index(device), piece.size())); },
               [&] { return "a piece of " + to_string(t); });
    b.copy_from_host(v->buffers.back(), piece.data(), piece.size());
  }
  return v;
}

ValueRef reshard_value(const ValueRef& v, const Type& t, const Sharding& s) {
  const Layout* to = layout_of(s, static_cast<int>(t.shape.size()));
  if (v->layout == to) {
    auto same = std::make_shared<Value>(*v);
    same->sharding = s;
    same->committed = true;
    same->number = false;
    return same;
  }
  const bool alone = v->layout->order()->size() == 1;
  if (!alone && v->layout->order()->sorted() != to->order()->sorted()) {
    std::vector<std::byte> whole = host_bytes("device_put", bytes_of(t.shape, t.dtype));
    gather_to_host(*v, t, whole.data());
    return scatter_from_host(whole, t, s);
  }
  auto source = std::make_shared<Value>(*v);
  if (alone) source->committed = false;  // it may go anywhere
  FlatGraph g;
  g.inputs = {g.add(&op_input, nullptr, {}, {t}, {}, &current_modes())};
  g.outputs = g.inputs;
  const Sharding* requested[] = {&s};
  const auto p =
      load_program(std::move(g), {&source, 1}, {false}, requested, {}, current_modes(), "device_put");
  const LaunchLeaf leaf{source};
  std::vector<ValueRef> results;
  launch(*p, {&leaf, 1}, results);
  ValueRef result = results[0];
  result->sharding = s;
  result->committed = true;
  return result;
}

ValueRef put_beside(const ValueRef& v, const Type& t, const Value& home) {
  if (home.layout->rank() == static_cast<int>(t.shape.size())) return reshard_value(v, t, home.sharding);
  return reshard_value(v, t, PositionalSharding(home.layout->order()->devices()).replicate());
}

ValueRef bring_home(const ValueRef& v, const Type& t, const DeviceOrder* home) {
  if (!is_bound(*v) || v->layout->order()->sorted() == home->sorted()) return v;
  const Device& first = home->devices()[0];
  const bool alone =
      v->layout->order()->size() == 1 && v->layout->order()->devices()[0].platform == first.platform;
  const ValueRef moved =
      alone ? v
            : reshard_value(v, t,
                            SingleDeviceSharding(first));  // every device takes its part of one that is alone
  auto here = std::make_shared<Value>(*moved);
  here->committed = false;
  return here;
}

}  // namespace shardarray
