// pmap: vmap over devices. The rows form a dimension that the compiler must shard with one row per device, so no separate execution path is
// needed.
#include <fmt/core.h>

#include <numeric>

#include "base/count_text.h"
#include "base/device_advice.h"
#include "base/sizes.h"
#include "graph/region.h"
#include "ops/record.h"
#include "shardarray/ops.h"
#include "transform/map_axes.h"

namespace shardarray {

namespace {

// The innermost device axis in scope, or null.
std::shared_ptr<const Axis> enclosing_axis() {
  const auto& axes = trace_state().axes;
  for (auto it = axes.rbegin(); it != axes.rend(); ++it)
    if ((*it)->region) return *it;
  return nullptr;
}

void check_args(std::span<const core::VmapArg> args) {
  for (const core::VmapArg& a : args)
    if (a.axis && *a.axis < 0)
      throw ShapeError(
          fmt::format("pmap: in_axes {} of argument {}: axes of pmap count from the front. Give {} instead.",
                      *a.axis, a.path, *a.axis + static_cast<std::int64_t>(type_of(a.array).shape.size())));
  for (const core::VmapArg& a : args)
    if (a.axis) return;
  throw ShapeError("pmap: must have at least one non-none value in in_axes: no array argument is mapped.");
}

std::shared_ptr<Axis> device_axis(const std::string& name, std::int64_t size,
                                  const std::vector<Device>& devices) {
  auto axis = std::make_shared<Axis>(Axis{name, size});
  axis->outer = enclosing_axis();
  if (!axis->outer) {
    axis->region = std::make_shared<Region>();
    axis->region->devices = devices;
    return axis;
  }
  if (!devices.empty())
    throw DeviceError("pmap: nested pmap with explicit devices. Give them to the outermost pmap.");
  axis->region = axis->outer->region;
  if (axis->region->mesh)
    throw TraceError(
        "pmap: inside shard_map the devices are those of its mesh. Use vmap, or shard_map over more axes.");
  return axis;
}

// All positions, including those of inner maps, need a device. `traced`: inner maps are known.
void check_devices(const Axis& axis, bool traced) {
  const Region& r = *axis.region;
  const std::int64_t needed = mul_sizes(axis.size, r.inside),
                     have = r.devices.empty() ? device_count() : static_cast<std::int64_t>(r.devices.size());
  if (needed > have)
    throw DeviceError(
        fmt::format("pmap: a computation that requires {} logical devices{}, but only {} are available. Map "
                    "fewer elements, or make more virtual devices ({}).",
                    needed, r.inside > 1 ? " due to nested pmaps" : "", have,
                    what_sets_devices((r.devices.empty() ? devices() : r.devices).front().platform)));
  if (traced && !r.devices.empty() && r.inside == 1 && axis.size != have)
    throw DeviceError(fmt::format("pmap: the mapped size must equal the number of given devices: {}, {}.",
                                  count_text(axis.size, "element"), count_text(have, "device")));
}

/// While a map is traced, its region describes that map's inner maps; the previous state is restored on failure.
struct InsideOfRegion {
  explicit InsideOfRegion(Region& r)
      : region(r), inside(std::exchange(r.inside, 1)), axes(std::exchange(r.axes_inside, {})) {}
  InsideOfRegion(const InsideOfRegion&) = delete;
  InsideOfRegion& operator=(const InsideOfRegion&) = delete;
  ~InsideOfRegion() {
    if (is_over) return;
    region.inside = inside;
    region.axes_inside = std::move(axes);
  }
  Region& region;
  std::int64_t inside;
  decltype(Region::axes_inside) axes;
  bool is_over = false;
};

}  // namespace

namespace core {

VmapResult pmap(MapBody f, std::span<const VmapArg> args, const std::string& axis_name,
                std::optional<std::int64_t> axis_size, const std::vector<Device>& devices, Where w) {
  const Site site(w, "pmap");
  check_args(args);
  VmapResult result;
  result.size = mapped_size(args, axis_size, "pmap");
  if (result.size == 0)
    throw ShapeError(
        "pmap: the mapped axis has size 0. Each of its elements is on a device of its own. Map at least one, "
        "or use vmap.");
  const auto axis = device_axis(axis_name, result.size, devices);
  if (!axis->outer) check_devices(*axis, false);
  auto [all, types, mapped] = rows_of(args);
  Region& region = *axis->region;
  InsideOfRegion before(region);
  const ScopedAxis scope(axis);
  const Graph g = traced(f, types, all, "pmap");
  if (!axis->outer) check_devices(*axis, true);
  mapped.resize(all.size(), false);
  for (std::size_t k = 0; k < all.size(); k++)
    all[k] = mapped[k] ? place_rows(all[k], axis) : place_whole(all[k], axis);
  result.out = batch_graph(g, all, mapped, axis, result.mapped);
  if (axis->outer) {
    region.inside = std::lcm(before.inside, result.size * region.inside);
    region.axes_inside.insert(region.axes_inside.begin(), {axis_name, result.size});
    if (before.axes.size() > region.axes_inside.size()) region.axes_inside = before.axes;
  }
  for (std::size_t k = 0; k < result.out.size(); k++)
    if (result.mapped[k]) result.out[k] = place_rows(result.out[k], axis);
  before.is_over = true;
  result.axis = axis;
  return result;
}

Array place_device_axis(const VmapResult& r, std::size_t k, std::optional<std::int64_t> axis) {
  const Array& x = r.out[k];
  if (!x.has_value()) return x;
  if (!axis) {
    if (!r.mapped[k]) return x;
    Shape shape = x.shape();
    shape.erase(0);
    return primitive::reshape(primitive::slice_dim(x, 0, 0, 1), shape);
  }
  const Array full = r.mapped[k] ? x : place_rows(add_leading(x, r.size), r.axis);
  const auto rank = static_cast<std::int64_t>(full.shape().size());
  if (*axis < 0 || *axis >= rank)
    throw ShapeError(fmt::format("pmap: out_axes: axis {} is out of range for an output {} of rank {}.",
                                 *axis, to_string(type_of(full)), rank));
  return moveaxis(full, 0, *axis);
}

}  // namespace core
}  // namespace shardarray
