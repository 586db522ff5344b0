// Copies of values between host and devices, and between placements.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "base/hash.h"
#include "base/host_memory.h"
#include "base/per_thread.h"
#include "base/sizes.h"
#include "execute/evaluate.h"
#include "execute/host_stream.h"
#include "execute/memory_for.h"
#include "graph/trace_state.h"
#include "layout/spelling.h"
#include "runtime/devices.h"
#include "runtime/processes.h"

namespace shardarray {

// A thread keeps its last one, so that values on one device share one sharding object.
struct LastSharding : std::optional<Sharding> {
  using optional::operator=;
};
const Sharding& sharding_on(const Device& device) {
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
  const std::uint64_t words[] = {bits, 0};  // complex128: the real part and 0
  ValueRef v = host_value(words, {{}, t}, device);
  v->number = true;
  v->bits = bits;
  return v;
}

namespace {

/// The scalars that a thread used last: programs called in turns have few of them.
struct LastNumbers {
  struct Number {
    DType type = DType::float32;
    std::uint64_t bits = 0, backend = 0;
    int device = 0;
    ValueRef value = nullptr;
  };
  std::array<Number, 8> slots;
};

}  // namespace

ValueRef shared_scalar_value(DType t, std::uint64_t bits, const Device& device) {
  auto& slots = PerThread<LastNumbers>::get().slots;
  LastNumbers::Number& last = slots[hash_mix(static_cast<std::uint64_t>(t), bits) % slots.size()];
  const std::uint64_t backend = backend_number(device.platform);
  if (last.value && last.type == t && last.bits == bits && last.backend == backend &&
      last.device == device.id)
    return last.value;
  last = {t, bits, backend, device.id, scalar_value(t, bits, device)};
  return last.value;
}

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

// Throws unless this process has every tile of the value.
static void check_addressable(const Value& v, const Type& t, const Instances& here) {
  const std::vector<Device>& devices = v.layout->order()->devices();
  for (std::size_t p = 0; p < here.of_position.size(); p++) {
    if (here.of_position[p] >= 0) continue;
    const Box tile = tile_of(*v.layout, t.shape, static_cast<int>(p));
    const bool known = tile.empty() || std::any_of(here.leader.begin(), here.leader.end(), [&](int own) {
                         return tile_of(*v.layout, t.shape, own) == tile;
                       });
    if (known) continue;
    const bool has_none = here.leader.empty();
    throw DeviceError(fmt::format(
        "{}: {} has a part on {}, which is of process {}; this is process {}{}. A process reads what its own "
        "devices hold. Read addressable_shards() in each process, or make it whole in all of them first: "
        "device_put(x, PositionalSharding(devices()).replicate()){}.{}",
        current_function("read"), to_string(t), to_string(devices[p]), devices[p].process_index,
        process_index(), has_none ? ", which has no device of it" : "",
        in_several_processes(devices)
            ? ", or gather_from_processes(x)[0]. Its rows, each where it lies, gives unshard(x)"
            : "",
        has_none ? fmt::format(" A mesh that no process is left out of has all {} devices().", device_count())
                 : ""));
  }
}

namespace {

/// One buffer of a value, and the tile in it. Only the first of several replicas is used.
struct Part {
  Box tile;
  BufferRef buffer;
};
std::vector<Part> distinct_parts(const Value& v, const Type& t) {
  const Instances instances = addressable_instances(*v.layout, v.shared);
  if (v.buffers.size() < static_cast<std::size_t>(v.layout->order()->size()))
    check_addressable(v, t, instances);
  std::vector<Part> parts;
  for (std::size_t i = 0; i < v.buffers.size(); i++) {
    Box tile = tile_of(*v.layout, t.shape, instances.leader[i]);
    const bool known = std::any_of(parts.begin(), parts.end(), [&](const Part& p) { return p.tile == tile; });
    if (!known && !tile.empty()) parts.push_back({std::move(tile), v.buffers[i]});
  }
  return parts;
}

/// The offset of `box` in `tile`, in elements.
std::size_t offset_in(const Box& tile, const Box& box) {
  std::int64_t o = 0;
  for (std::size_t d = 0; d < tile.size.size(); d++) o = o * tile.size[d] + box.lo[d] - tile.lo[d];
  return static_cast<std::size_t>(o);
}

/// Splits an array into boxes of at most most_slab_bytes (at least one element) that follow one another in row-major order: some rows of
/// one dimension, all of the later ones, one index of the earlier ones. A tile's part of such a box is contiguous in the tile.
constexpr std::int64_t most_slab_bytes = 1 << 20;
template <class F> void each_slab(const Shape& shape, std::int64_t item, const F& f) {
  if (num_elements(shape) == 0) return;
  std::size_t cut = shape.size();
  std::int64_t row = item;  // bytes of one index of dimension cut - 1
  while (cut > 0 && row * shape[cut - 1] <= most_slab_bytes) row *= shape[--cut];
  Box slab = whole_box(shape);
  if (cut == 0) return f(slab);
  const std::size_t stepped = cut - 1;
  const std::int64_t rows = std::max<std::int64_t>(1, most_slab_bytes / row);
  for (std::size_t d = 0; d < stepped; d++) slab.size[d] = 1;
  for (;;) {
    for (slab.lo[stepped] = 0; slab.lo[stepped] < shape[stepped]; slab.lo[stepped] += slab.size[stepped]) {
      slab.size[stepped] = std::min(rows, shape[stepped] - slab.lo[stepped]);
      f(slab);
    }
    std::size_t d = stepped;
    while (d > 0 && ++slab.lo[d - 1] == shape[d - 1]) slab.lo[--d] = 0;
    if (d == 0) return;
  }
}

/// The bounding box of what the parts have of a slab; none if they have nothing.
std::optional<Box> needed_of(const std::vector<Part>& parts, const Box& slab) {
  std::optional<Box> all;
  for (const Part& p : parts) {
    const Box box = intersect(p.tile, slab);
    if (box.empty()) continue;
    if (!all) all = box;
    for (std::size_t d = 0; d < box.lo.size(); d++) {
      const std::int64_t end = std::max(all->lo[d] + all->size[d], box.lo[d] + box.size[d]);
      all->lo[d] = std::min(all->lo[d], box.lo[d]);
      all->size[d] = end - all->lo[d];
    }
  }
  return all;
}

/// The first dimension of the box's contiguous runs: in later ones it has the slab's extents.
std::size_t first_of_run(const Box& slab, const Box& box) {
  std::size_t d = box.size.size();
  while (d > 0 && box.size[d - 1] == slab.size[d - 1]) d--;
  return d > 0 ? d - 1 : 0;
}
/// The length of the contiguous runs of `box` in the slab's row-major order, in elements.
std::size_t run_length(const Box& slab, const Box& box) {
  std::int64_t n = 1;
  for (std::size_t d = first_of_run(slab, box); d < box.size.size(); d++) n *= box.size[d];
  return static_cast<std::size_t>(n);
}
/// Shorter runs are read together with the gaps between them.
constexpr std::size_t least_run_bytes = 4096;
/// f(begin, count) for each run of `box`, in the order of the slab; in elements.
template <class F> void each_run(const Box& slab, const Box& box, const F& f) {
  const std::size_t cut = first_of_run(slab, box), count = run_length(slab, box);
  Box at = box;
  for (;;) {
    f(offset_in(slab, at), count);
    std::size_t d = cut;
    while (d > 0 && ++at.lo[d - 1] == box.lo[d - 1] + box.size[d - 1]) d--, at.lo[d] = box.lo[d];
    if (d == 0) return;
  }
}

/// The host memory of `box`, which is contiguous in its part; empty: only copies reach it.
std::span<std::byte> in_host_memory(const Part& p, const Box& box, std::size_t item) {
  const std::span<std::byte> whole = p.buffer->owner->host_memory(p.buffer);
  if (whole.empty()) return {};
  return whole.subspan(offset_in(p.tile, box) * item, static_cast<std::size_t>(box.elements()) * item);
}
/// The same for the first part that contains all of `slab`.
std::span<std::byte> in_host_memory(const std::vector<Part>& parts, const Box& slab, std::size_t item) {
  for (const Part& p : parts)
    if (intersect(p.tile, slab) == slab)
      if (const auto memory = in_host_memory(p, slab, item); !memory.empty()) return memory;
  return {};
}

/// A staging buffer on the host, allocated when it is needed.
class HostRoom {
 public:
  explicit HostRoom(const char* function) : function_(function) {}
  std::span<std::byte> first(std::size_t bytes) {
    if (bytes_.size() < bytes) bytes_ = host_bytes(function_, static_cast<std::int64_t>(bytes));
    return {bytes_.data(), bytes};
  }

 private:
  const char* function_;
  std::vector<std::byte> bytes_;
};

/// Copies the parts of a slab, row-major, to `to`.
void gather_slab(const std::vector<Part>& parts, const Box& slab, std::size_t item, std::byte* to,
                 HostRoom& scratch) {
  for (const Part& p : parts) {
    const Box box = intersect(p.tile, slab);
    if (box.empty()) continue;
    const std::size_t bytes = static_cast<std::size_t>(box.elements()) * item;
    const BufferPart from(p.buffer, offset_in(p.tile, box) * item, bytes);
    if (box == slab) return p.buffer->owner->copy_to_host(to, from.ref(), bytes);
    std::span<std::byte> piece = in_host_memory(p, box, item);
    if (piece.empty()) {
      piece = scratch.first(bytes);
      p.buffer->owner->copy_to_host(piece.data(), from.ref(), bytes);
    }
    copy_box(to, slab, piece.data(), box, box, item);
  }
}
/// Copies a slab from host memory to its parts.
void scatter_slab(const std::vector<Part>& parts, const Box& slab, std::size_t item, const std::byte* from,
                  HostRoom& scratch) {
  for (const Part& p : parts) {
    const Box box = intersect(p.tile, slab);
    if (box.empty()) continue;
    const std::size_t bytes = static_cast<std::size_t>(box.elements()) * item;
    const std::span<std::byte> here = in_host_memory(p, box, item);
    if (here.data() == from) continue;
    const auto copy = [&](const std::byte* piece) {
      const BufferPart to(p.buffer, offset_in(p.tile, box) * item, bytes);
      p.buffer->owner->copy_from_host(to.ref(), piece, bytes);
    };
    if (box == slab) {
      copy(from);
    } else if (!here.empty()) {
      copy_box(here.data(), box, from, slab, box, item);
    } else {
      const std::span<std::byte> piece = scratch.first(bytes);
      copy_box(piece.data(), box, from, slab, box, item);
      copy(piece.data());
    }
  }
}

}  // namespace

// The sum of the partial sums that the devices hold.
static ValueRef added_up(const Value& v, const Type& t) {
  return reshard_value(std::make_shared<Value>(v), t, added_up(v.sharding));
}
static bool is_partial(const Value& v) { return !v.layout->unreduced().empty(); }

void gather_to_host(const Value& v, const Type& t, void* to) {
  if (is_partial(v)) return gather_to_host(*added_up(v, t), t, to);
  wait(v.ready);
  if (num_elements(t.shape) == 0) return;
  HostRoom piece("gather");
  gather_slab(distinct_parts(v, t), whole_box(t.shape), itemsize(t.dtype), static_cast<std::byte*>(to),
              piece);
}

void stream_to_host(const char* function, const Value& v, const Type& t,
                    detail::FunctionRef<void(std::span<const std::byte>)> take) {
  if (is_partial(v)) return stream_to_host(function, *added_up(v, t), t, take);
  wait(v.ready);
  const std::size_t item = itemsize(t.dtype);
  const std::vector<Part> parts = distinct_parts(v, t);
  HostRoom whole(function), piece(function);
  each_slab(t.shape, static_cast<std::int64_t>(item), [&](const Box& slab) {
    if (const auto here = in_host_memory(parts, slab, item); !here.empty()) return take(here);
    const auto bytes = whole.first(static_cast<std::size_t>(slab.elements()) * item);
    gather_slab(parts, slab, item, bytes.data(), piece);
    take(bytes);
  });
}

ValueRef stream_from_host(const char* function, const Type& t, const Sharding& s, bool committed,
                          detail::FunctionRef<void(std::span<std::byte>)> fill, const Pass* pass) {
  if (is_partial(s))
    return reshard_value(stream_from_host(function, t, added_up(s), committed, fill, pass), t, s);
  const Layout* l = layout_of(s, static_cast<int>(t.shape.size()));
  const bool shared = share_replicas() || l->order()->size() == 1;
  const Instances instances = addressable_instances(*l, shared);
  auto v = make_value(l, s, committed, shared);
  std::vector<Part> parts;
  for (const int leader : instances.leader) {
    const Device& device = l->order()->devices()[static_cast<std::size_t>(leader)];
    Box tile = tile_of(*l, t.shape, leader);
    const auto bytes = static_cast<std::size_t>(bytes_of(tile.size, t.dtype));
    memory_for([&] { v->buffers.push_back(backend(device.platform).allocate(local_index(device), bytes)); },
               [&] { return "a piece of " + to_string(t); });
    parts.push_back({std::move(tile), v->buffers.back()});
  }
  const std::size_t item = itemsize(t.dtype);
  HostRoom whole(function), piece(function);
  each_slab(t.shape, static_cast<std::int64_t>(item), [&](const Box& slab) {
    const auto bytes = static_cast<std::size_t>(slab.elements()) * item;
    const std::optional<Box> needed = pass ? needed_of(parts, slab) : slab;
    if (!needed) return (*pass)(bytes);
    std::span<std::byte> here = in_host_memory(parts, slab, item);
    if (here.empty()) here = whole.first(bytes);
    if (run_length(slab, *needed) * item < least_run_bytes) {
      fill(here);
    } else {
      std::size_t done = 0;
      each_run(slab, *needed, [&](std::size_t begin, std::size_t count) {
        if (begin > done) (*pass)((begin - done) * item);
        fill(here.subspan(begin * item, count * item));
        done = begin + count;
      });
      if (done * item < bytes) (*pass)(bytes - done * item);
    }
    scatter_slab(parts, slab, item, here.data(), piece);
  });
  return v;
}

// Distributes a whole value in host memory: for moves between device sets.
static ValueRef scatter_from_host(const std::vector<std::byte>& whole, const Type& t, const Sharding& s) {
  const std::byte* next = whole.data();
  return stream_from_host("device_put", t, s, true, [&](std::span<std::byte> to) {
    std::memcpy(to.data(), next, to.size());
    next += to.size();
  });
}

// The processes that exchange values between their devices; null: this process is alone.
static Processes* those_who_give() { return has_other_processes() ? other_processes() : nullptr; }

// Whether moving a value between these devices involves several processes; all processes get the same answer.
static bool must_give(std::span<const Device> from, std::span<const Device> to) {
  if (those_who_give() == nullptr) return false;
  std::vector<Device> both(from.begin(), from.end());
  both.insert(both.end(), to.begin(), to.end());
  return in_several_processes(both);
}

// Gathers a value of which other processes may have parts. All of them call this; each contributes the tiles whose first holder, as it
// sees the value, is its own. So a value that each process has on a device of its own comes from itself.
static void gather_from_processes(const Value& v, const Type& t, void* to) {
  const std::vector<Device>& devices = v.layout->order()->devices();
  const Instances here = addressable_instances(*v.layout, v.shared);
  const std::size_t item = itemsize(t.dtype);
  wait(v.ready);
  std::vector<std::pair<Box, int>> tiles;  // and the process of the first holder
  std::string mine;
  for (std::size_t p = 0; p < devices.size(); p++) {
    Box tile = tile_of(*v.layout, t.shape, static_cast<int>(p));
    if (tile.empty() ||
        std::any_of(tiles.begin(), tiles.end(), [&](const auto& known) { return known.first == tile; }))
      continue;
    if (const int instance = here.of_position[p]; instance >= 0) {
      const BufferRef& from = v.buffers[static_cast<std::size_t>(instance)];
      const std::size_t bytes = static_cast<std::size_t>(tile.elements()) * item, at = mine.size();
      mine.resize(at + bytes);
      from->owner->copy_to_host(mine.data() + at, from, bytes);
    }
    tiles.emplace_back(std::move(tile), devices[p].process_index);
  }
  const std::vector<std::string> all = gather_texts(*those_who_give(), "device_put: " + to_string(t), mine);
  std::vector<std::size_t> next(all.size(), 0);
  for (const auto& [tile, process] : tiles) {
    const auto p = static_cast<std::size_t>(process);
    const std::size_t bytes = static_cast<std::size_t>(tile.elements()) * item;
    if (next[p] + bytes > all[p].size())
      throw TransportError(fmt::format(
          "device_put: process {} gives other parts of {} than it has in process {}. All processes "
          "compute the same in the same order. Compare their shardings.",
          p, to_string(t), process_index()));
    copy_box(static_cast<std::byte*>(to), whole_box(t.shape),
             reinterpret_cast<const std::byte*>(all[p].data()) + next[p], tile, tile, item);
    next[p] += bytes;
  }
}

// The whole value in host memory, for processes that have devices among `to`.
static std::vector<std::byte> whole_for(const Value& v, const Type& t, std::span<const Device> to) {
  std::vector<std::byte> whole = host_bytes("device_put", bytes_of(t.shape, t.dtype));
  const std::vector<Device>& from = v.layout->order()->devices();
  if (must_give(from, to)) gather_from_processes(v, t, whole.data());
  else if (!spans_processes(from)) gather_to_host(v, t, whole.data());
  return whole;  // not filled if the value belongs to another process and stays there
}

ValueRef reshard_value(const ValueRef& v, const Type& t, const Sharding& s, const char* function) {
  const Layout* to = layout_of(s, static_cast<int>(t.shape.size()));
  if (v->layout == to) {
    auto same = std::make_shared<Value>(*v);
    same->sharding = s;
    same->committed = true;
    same->number = false;
    return same;
  }
  // An uncommitted value on one device is in every process and moves without the others; a committed one is in one process only.
  const bool alone = v->layout->order()->size() == 1 && !(v->committed && those_who_give() != nullptr);
  if (!alone && v->layout->order()->sorted() != to->order()->sorted()) {
    if (is_partial(*v)) return reshard_value(added_up(*v, t), t, s, function);
    return scatter_from_host(whole_for(*v, t, to->order()->devices()), t, s);
  }
  auto source = std::make_shared<Value>(*v);
  if (alone) source->committed = false;  // it may go anywhere
  FlatGraph g;
  g.inputs = {g.add(&op_input, nullptr, {}, {t}, {}, &current_modes())};
  g.outputs = g.inputs;
  const Sharding* requested[] = {&s};
  const auto p = load_program(std::move(g), {&source, 1}, {false}, requested, {}, current_modes(), function);
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
  if (must_give(v->layout->order()->devices(), home->devices())) {
    // Then each process has its own copy.
    const std::vector<std::byte> whole = whole_for(*v, t, home->devices());
    const std::vector<Device> known = devices(home->devices()[0].platform);
    return host_value(whole.data(), t, *std::find_if(known.begin(), known.end(), [](const Device& d) {
                        return d.process_index == process_index();
                      }));
  }
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
