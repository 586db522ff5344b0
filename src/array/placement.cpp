// Placing arrays: constraints and placements, arrays assembled from pieces.
#include "shardarray/placement.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "base/count_text.h"
#include "base/host_memory.h"
#include "base/sizes.h"
#include "execute/constraint.h"
#include "execute/evaluate.h"
#include "execute/without_value.h"
#include "graph/trace_state.h"
#include "layout/relabel.h"
#include "layout/spelling.h"
#include "runtime/devices.h"
#include "shardarray/detail/maps.h"

namespace shardarray {

// Elements that are read have no derivative.
static void need_constant(const Array& x, const char* function) {
  if (!x.has_value() || x.node()->variable == 0) return;
  const auto& mine = trace_state().gradients;
  if ((!mine.empty() && x.node()->variable == mine.front()) || foreign_gradient(*x.node()) != 0)
    throw TraceError(
        fmt::format("{}: {} is differentiated, and an array made of its elements would be a constant. A "
                    "gradient goes through what is computed of arrays. Use device_put or filter_shard.",
                    function, to_string(type_of(x))));
}

namespace core {

Array shard_leaf(const Array& x, const Sharding& s, const std::string& path, Where w) {
  const Site site(w);
  check_fits(x, s, path, current_function("filter_shard"));
  if (is_without_value(x) && !tracing()) return without_value(type_of(x), s, w);
  const bool lazy = tracing() || is_differentiated(*x.node()) || !x.node()->evaluated();
  if (lazy) return constrain(x, s, w);
  return device_put_leaf(x, s, path, w);
}

Array device_put_leaf(const Array& x, const Sharding& s, const std::string& path, Where w) {
  const Site site(w);
  check_fits(x, s, path, "device_put");
  if (is_without_value(x) && !tracing()) return without_value(type_of(x), s, w);
  if (tracing() || is_differentiated(*x.node())) return constrain(x, s, w);
  const ValueRef v = force(x, "device_put");
  if (v->committed && v->sharding == s) return x;
  return leaf_array(type_of(x), reshard_value(v, type_of(x), s), w);
}

void eval_leaves(std::span<const Array> arrays) { evaluate(arrays, "eval"); }

Array make_array(const void* data, DType dtype, const Shape& shape, Where w) {
  const Site site(w);
  const Type t{shape, dtype};
  check_type(t, "array");
  return leaf_array(t, host_value(data, t, current_default_device()), w);
}

Array from_callback(const Shape& shape, const Sharding& s,
                    const std::function<Array(const ShardIndex&)>& piece, Where w) {
  const Site site(w);
  need_devices("make_array_from_callback", s.device_assignment());
  check_type({shape, DType::bool_}, "make_array_from_callback");
  if (is_partial(s)) return device_put_leaf(from_callback(shape, added_up(s), piece, w), s, "", w);
  const Layout* l = layout_of(s, static_cast<int>(shape.size()));
  const auto map = s.devices_indices_map(shape);
  const Instances instances = addressable_instances(*l, share_replicas());
  Type t{shape, DType::float32};
  auto v = make_value(l, s, true, share_replicas());
  std::vector<std::pair<ShardIndex, BufferRef>> made;
  for (int leader : instances.leader) {
    const Device& device = l->order()->devices()[static_cast<std::size_t>(leader)];
    auto at = std::find_if(map.begin(), map.end(), [&](const auto& m) { return m.first == device; });
    const Box tile = tile_of(*l, shape, leader);
    auto known = std::find_if(made.begin(), made.end(), [&](const auto& m) { return m.first == at->second; });
    Backend& b = backend(device.platform);
    if (known == made.end()) {
      const Array part = [&] {
        const detail::UserSite user;
        return piece(at->second);
      }();
      const Type& given = type_of(part, "make_array_from_callback");
      need_constant(part, "make_array_from_callback");
      if (!(given.shape == tile.size) && !(given.shape.size() == 1 && given.shape[0] == tile.elements()))
        throw ShapeError(
            fmt::format("make_array_from_callback: Expected shard shape {} doesn't match the single device "
                        "array shape {} for index {}. Return the part that the index names.",
                        to_string(tile.size), to_string(given.shape), to_string(at->second)));
      if (made.empty()) t.dtype = given.dtype;
      if (given.dtype != t.dtype)
        throw DTypeError(
            fmt::format("make_array_from_callback: pieces must have one dtype, but got {} and {}. Cast them "
                        "in the callback.",
                        name(t.dtype), name(given.dtype)));
      const std::vector<std::byte> bytes = host_elements(part, "make_array_from_callback");
      BufferRef buffer = b.allocate(local_index(device), bytes.size());
      b.copy_from_host(buffer, bytes.data(), bytes.size());
      v->buffers.push_back(buffer);
      made.push_back({at->second, std::move(buffer)});
    } else {
      BufferRef buffer = b.allocate(local_index(device), known->second->bytes);
      b.copy(buffer, known->second, known->second->bytes);
      v->buffers.push_back(std::move(buffer));
    }
  }
  check_type(t, "make_array_from_callback");  // the dtype was unknown before
  return leaf_array(t, std::move(v), w);
}

}  // namespace core

NamedSharding relabel_devices(const Array& x, const NamedSharding& sharding, Where w) {
  const Site site(w, "relabel_devices");
  core::check_fits(x, sharding, "", "relabel_devices");
  const auto rank = static_cast<int>(x.ndim());
  const Layout &from = *layout_of(x.sharding(), rank), &to = *layout_of(sharding, rank);
  const std::vector<Device> before = to.order()->devices(), after = nearest_devices(from, to, x.shape());
  if (before == after) return sharding;
  std::vector<Device> devices;
  for (const Device& d : sharding.mesh().devices())
    devices.push_back(after[static_cast<std::size_t>(std::ranges::find(before, d) - before.begin())]);
  Shape sizes;
  for (const auto& [name, size] : sharding.mesh().shape()) sizes.push_back(size);
  return {Mesh({sizes, devices}, sharding.mesh().axis_names(), w), sharding.spec(), w};
}

static Array from_single_device_arrays(const char* function, const Shape& shape, const Sharding& sharding,
                                       std::span<const Array> arrays, std::optional<DType> dtype, Where w) {
  const Site site(w);
  for (const Array& a : arrays) need_constant(a, function);
  check_type({shape, DType::bool_}, function);
  const Layout* l = layout_of(sharding, static_cast<int>(shape.size()));
  const Instances instances = addressable_instances(*l, false);
  const auto count = instances.leader.size();
  if (arrays.size() == count && arrays.empty() && !dtype)
    throw DTypeError(
        fmt::format("{}: no device of {} is of this process, so that no array says the dtype. Give it as the "
                    "last argument.",
                    function, sharding.to_string()));
  if (arrays.size() != count)
    throw ShardingError(fmt::format(
        "{}: Expected {} per-device arrays (one per device of the sharding{}), but got {}. Every device "
        "holds one piece. Give one array for each device of {}{}.",
        function, count, in_several_processes(l->order()->devices()) ? " in this process" : "", arrays.size(),
        in_several_processes(l->order()->devices()) ? fmt::format("process {} in ", process_index()) : "",
        sharding.to_string()));
  evaluate(arrays, function);
  Type t{shape, dtype ? *dtype : type_of(arrays[0], function).dtype};
  check_type(t, function);
  core::check_summands(t, sharding, function);
  // If no two devices of one memory hold the same tile, sharing makes no difference.
  const bool shares = share_replicas() && addressable_instances(*l, true).leader.size() == count;
  auto v = make_value(l, sharding, true, shares);
  v->buffers = SmallVector<BufferRef, 8>(count);
  for (const Array& a : arrays) {
    const ValueRef piece = value_of(a);
    wait(piece->ready);
    if (piece->layout->order()->size() != 1)
      throw ShardingError(fmt::format(
          "{}: every array must have one shard, but {} is on {} devices. A piece lies on one device. "
          "Use addressable_data(i) of it, or device_put it to one device.",
          function, to_string(type_of(a)), piece->layout->order()->size()));
    const Device& device = piece->layout->order()->devices()[0];
    const int p = l->order()->position(device);
    const int own = p < 0 ? -1 : instances.of_position[static_cast<std::size_t>(p)];
    if (own < 0 || v->buffers[static_cast<std::size_t>(own)])
      throw ShardingError(
          fmt::format("{}: Addressable devices and per-device arrays devices do not match: {} {}. Give one "
                      "array for each device of {}.",
                      function, to_string(device), own < 0 ? "is not in the sharding" : "has two arrays",
                      sharding.to_string()));
    const Shape expected = tile_of(*l, shape, p).size;
    if (!(type_of(a).shape == expected))
      throw ShapeError(fmt::format(
          "{}: Expected shard shape {} doesn't match the single device array shape {} on {}. Every "
          "piece has the shape that the sharding says. Slice or pad it, or change the sharding.",
          function, to_string(expected), to_string(type_of(a).shape), to_string(device)));
    if (type_of(a).dtype != t.dtype)
      throw DTypeError(fmt::format(
          "{}: arrays must have matching dtypes. Got {}, expected {}. A global array has one dtype. "
          "Cast the pieces with astype.",
          function, name(type_of(a).dtype), name(t.dtype)));
    v->buffers[static_cast<std::size_t>(own)] = piece->buffers[0];
  }
  return leaf_array(t, std::move(v), w);
}
Array make_array_from_single_device_arrays(const Shape& shape, const Sharding& sharding,
                                           std::span<const Array> arrays, Where w) {
  return from_single_device_arrays("make_array_from_single_device_arrays", shape, sharding, arrays,
                                   std::nullopt, w);
}
Array make_array_from_single_device_arrays(const Shape& shape, const Sharding& sharding,
                                           std::span<const Array> arrays, DType dtype, Where w) {
  return from_single_device_arrays("make_array_from_single_device_arrays", shape, sharding, arrays, dtype, w);
}

namespace {

/// For each local tile along one dimension: where it starts in the given data.
using LocalTiles = std::map<std::int64_t, std::int64_t>;

/// The given data is the whole dimension, or this process's tiles, concatenated. Throws ShapeError otherwise.
LocalTiles local_tiles(const Layout& l, std::span<const int> own, const Shape& whole, const Type& local,
                       std::size_t d) {
  std::map<std::int64_t, Box> boxes;
  for (const int p : own) boxes.emplace(l.tile_index(static_cast<int>(d), p), tile_of(l, whole, p));
  LocalTiles r;
  std::int64_t total = 0;
  for (const auto& [tile, box] : boxes) {
    r.emplace(tile, local.shape[d] == whole[d] ? box.lo[d] : total);
    total += box.size[d];
  }
  if (local.shape[d] == whole[d] || local.shape[d] == total) return r;
  throw ShapeError(fmt::format(
      "make_array_from_process_local_data: dimension {} of {} has {}. Of the {} of the whole array {} are on "
      "devices of process {}, and a process gives these, or all. Give that many.",
      d, to_string(local), count_text(local.shape[d], "entry"), whole[d], total, process_index()));
}

Shape whole_shape(const Layout& l, std::span<const int> own, const Type& local) {
  Shape whole;
  for (std::size_t d = 0; d < local.shape.size(); d++) {
    std::set<std::int64_t> tiles;
    for (const int p : own) tiles.insert(l.tile_index(static_cast<int>(d), p));
    const auto here = static_cast<std::int64_t>(tiles.size());
    if (here == 0 || local.shape[d] % here != 0)
      throw ShapeError(
          fmt::format("make_array_from_process_local_data: dimension {} of {} is cut into {} equal parts "
                      "here, in process {}, where the shape of the whole is not given. Give `global_shape`.",
                      d, to_string(local), here, process_index()));
    whole.push_back(local.shape[d] / here * l.tiles(static_cast<int>(d)));
  }
  return whole;
}

}  // namespace

Array make_array_from_process_local_data(const Sharding& sharding, const Array& local,
                                         const ShapeOf& global_shape, Where w) {
  constexpr const char* function = "make_array_from_process_local_data";
  const Site site(w, function);
  const Type t = type_of(local, function);
  need_constant(local, function);
  if (is_partial(sharding))
    return core::device_put_leaf(
        make_array_from_process_local_data(added_up(sharding), local, global_shape, w), sharding, "", w);
  const Layout& l = *layout_of(sharding, static_cast<int>(t.shape.size()), function);
  const std::vector<int> own = addressable_instances(l, false).leader;
  const Shape whole = global_shape.shape ? *global_shape.shape : whole_shape(l, own, t);
  if (whole.size() != t.shape.size())
    throw ShapeError(
        fmt::format("{}: {} is a part of an array of shape {}. A part has as many dimensions as the whole. "
                    "Correct one of them.",
                    function, to_string(t), to_string(whole)));
  std::vector<LocalTiles> tiles;
  for (std::size_t d = 0; d < whole.size(); d++) tiles.push_back(local_tiles(l, own, whole, t, d));
  const std::vector<std::byte> given = host_elements(local, function);
  std::vector<Array> pieces;
  for (const int p : own) {
    Box box = tile_of(l, whole, p);
    for (std::size_t d = 0; d < whole.size(); d++)
      box.lo[d] = tiles[d].at(l.tile_index(static_cast<int>(d), p));
    const Type piece{box.size, t.dtype};
    std::vector<std::byte> bytes = host_bytes(function, bytes_of(piece.shape, piece.dtype));
    copy_box(bytes.data(), box, given.data(), whole_box(t.shape), box, itemsize(t.dtype));
    const Device& device = l.order()->devices()[static_cast<std::size_t>(p)];
    pieces.push_back(leaf_array(piece, host_value(bytes.data(), piece, device), w));
  }
  return from_single_device_arrays(function, whole, sharding, pieces, t.dtype, w);
}

}  // namespace shardarray
