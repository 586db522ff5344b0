#include "graph/region.h"

#include <fmt/core.h>

#include <algorithm>

namespace shardarray {

namespace {

// The axes, followed by those of the devices that each innermost position still has.
std::vector<std::pair<std::string, std::int64_t>> mesh_axes(const std::vector<const Axis*>& axes,
                                                            const Region& region) {
  std::vector<std::pair<std::string, std::int64_t>> all;
  std::int64_t rest = axes[0]->size * region.inside, inner = 1;
  for (const Axis* a : axes) {
    all.emplace_back(a->name, a->size);
    rest /= a->size;
  }
  const std::vector<std::pair<std::string, std::int64_t>> behind(
      region.axes_inside.begin() +
          static_cast<std::ptrdiff_t>(std::min(axes.size() - 1, region.axes_inside.size())),
      region.axes_inside.end());
  for (const auto& a : behind) inner *= a.second;
  if (inner == rest) all.insert(all.end(), behind.begin(), behind.end());
  else all.emplace_back("rest", rest);
  for (std::size_t k = 0; k < all.size(); k++) {  // every axis needs a distinct name
    const auto same = [&](const auto& a) { return a.first == all[k].first; };
    if (all[k].first.empty() || std::any_of(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(k), same))
      all[k].first = fmt::format("map{}", k);
  }
  return all;
}

Mesh mesh_of(const std::vector<const Axis*>& axes) {
  const Region& region = *axes[0]->region;
  if (region.mesh) return *region.mesh;
  DeviceGrid grid;
  std::vector<std::string> names;
  for (const auto& [name, size] : mesh_axes(axes, region)) {
    names.push_back(name);
    grid.shape.push_back(size);
  }
  grid.devices = region.devices.empty() ? devices() : region.devices;
  grid.devices.resize(static_cast<std::size_t>(num_elements(grid.shape)));
  return Mesh(std::move(grid), std::move(names));
}

}  // namespace

Sharding region_sharding(const std::vector<std::shared_ptr<const Axis>>& axes, const Shape& dims,
                         std::size_t rank) {
  std::vector<const Axis*> outermost_first;
  for (auto it = axes.rbegin(); it != axes.rend(); ++it) outermost_first.push_back(it->get());
  const Mesh mesh = mesh_of(outermost_first);
  std::vector<SpecEntry> spec(rank, none);
  for (std::size_t k = 0; k < axes.size(); k++)
    if (dims[k] != 0)
      spec[rank - static_cast<std::size_t>(-dims[k])] =
          axes[k]->region->mesh ? axes[k]->name : mesh.axis_names()[axes.size() - 1 - k];
  return NamedSharding(mesh, PartitionSpec(std::move(spec)));
}

}  // namespace shardarray
