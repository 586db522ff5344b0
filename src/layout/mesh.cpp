// Mesh, PartitionSpec and NamedSharding.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "base/count_text.h"
#include "base/device_advice.h"
#include "base/sizes.h"
#include "layout/sharding_impl.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

std::string quoted_list(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& n : names) out += fmt::format("{}'{}'", out.empty() ? "" : ", ", n);
  return out;
}

// A Python tuple of printed items: `(a,)`.
std::string tuple_of(const std::vector<std::string>& items) {
  return fmt::format("({}{})", fmt::join(items, ", "), items.size() == 1 ? "," : "");
}

std::string entry_string(const SpecEntry& e) {
  if (!e.tuple) return e.names.empty() ? "None" : fmt::format("'{}'", e.names[0]);
  std::vector<std::string> items;
  for (const std::string& n : e.names) items.push_back(fmt::format("'{}'", n));
  return tuple_of(items);
}

void check_axis_names(const char* function, const std::vector<std::string>& names, const Shape& sizes) {
  for (std::size_t k = 0; k < names.size(); k++) {
    if (names[k].empty())
      throw ShardingError(
          fmt::format("{}: an axis name is empty in ({}). Specs find an axis by its name. Give it one.",
                      function, quoted_list(names)));
    const auto first =
        static_cast<std::size_t>(std::find(names.begin(), names.end(), names[k]) - names.begin());
    if (first < k)
      throw ShardingError(fmt::format(
          "{}: axis name '{}' stands twice in ({}). Specs find an axis by its name. Rename one, or "
          "make one axis of size {} of both.",
          function, names[k], quoted_list(names), mul_sizes(sizes[first], sizes[k])));
  }
}

void check_grid(const DeviceGrid& grid, const std::vector<std::string>& names) {
  if (grid.shape.size() != names.size())
    throw ShardingError(fmt::format(
        "Mesh: a grid of shape {} with {} ({}). Every dimension of the grid has one name. Give {}.",
        to_string(grid.shape), count_text(names.size(), "axis name"), quoted_list(names),
        count_text(grid.shape.size(), "name")));
  if (elements_or_most(grid.shape) != static_cast<std::int64_t>(grid.devices.size()) || grid.devices.empty())
    throw ShardingError(
        fmt::format("Mesh: a grid of shape {} with {}. The sizes must multiply to the number of devices, at "
                    "least one. Use create_device_mesh.",
                    to_string(grid.shape), count_text(grid.devices.size(), "device")));
  check_axis_names("Mesh", names, grid.shape);
  for (std::size_t k = 0; k < grid.devices.size(); k++) {
    const auto first =
        std::find(grid.devices.begin(), grid.devices.end(), grid.devices[k]) - grid.devices.begin();
    if (first != static_cast<std::ptrdiff_t>(k))
      throw ShardingError(
          fmt::format("Mesh: device {} stands at positions {} and {} of the grid. Every device occurs once. "
                      "Remove one.",
                      to_string(grid.devices[k]), first, k));
  }
}

Sharding named_sharding(const Mesh& mesh, const PartitionSpec& spec, Where w) {
  const Site site(w);
  std::vector<std::string> seen;
  const auto check = [&](const std::string& axis) {
    if (axis_position(mesh, axis) < 0)
      throw ShardingError(
          fmt::format("NamedSharding: axis '{}' of {} is not found in {}. A spec names axes of its mesh. Use "
                      "one of ({}).",
                      axis, spec.to_string(), mesh.to_string(), quoted_list(mesh.axis_names())));
    if (std::find(seen.begin(), seen.end(), axis) != seen.end())
      throw ShardingError(
          fmt::format("NamedSharding: {} has duplicate entries for '{}'. A mesh axis cuts at most one "
                      "dimension, or holds summands. Remove one of them.",
                      spec.to_string(), axis));
    seen.push_back(axis);
  };
  for (const SpecEntry& e : spec.entries())
    for (const std::string& axis : e.names) check(axis);
  for (const std::string& axis : spec.unreduced_axes()) check(axis);
  return make_sharding(NamedSpelling{mesh, spec}, mesh.devices());
}

}  // namespace

Mesh::Mesh(DeviceGrid grid, std::vector<std::string> names, Where w) {
  const Site site(w);
  check_grid(grid, names);
  state_ = std::make_shared<const State>(std::move(grid), std::move(names));
}

const std::vector<std::string>& Mesh::axis_names() const { return state_->names; }

std::vector<std::pair<std::string, std::int64_t>> Mesh::shape() const {
  std::vector<std::pair<std::string, std::int64_t>> out;
  for (std::size_t k = 0; k < state_->names.size(); k++)
    out.emplace_back(state_->names[k], state_->grid.shape[k]);
  return out;
}

const OrderRef& order_of(const Mesh& mesh) {
  const Mesh::State& s = mesh.state();
  std::call_once(s.order_once, [&] { s.order = DeviceOrder::shared(s.grid.devices); });
  return s.order;
}

std::int64_t Mesh::size() const { return static_cast<std::int64_t>(state_->grid.devices.size()); }
const std::vector<Device>& Mesh::devices() const { return state_->grid.devices; }

std::int64_t Mesh::axis_size(const std::string& name, Where w) const {
  const Site site(w);
  const int k = axis_position(*this, name);
  if (k < 0)
    throw ShardingError(
        fmt::format("axis_size: {} has no axis '{}'. An axis is found by its name. Use one of ({}).",
                    to_string(), name, quoted_list(state_->names)));
  return state_->grid.shape[k];
}

std::string Mesh::to_string() const {
  std::vector<std::string> parts;
  for (const auto& [axis, size] : shape()) parts.push_back(fmt::format("'{}': {}", axis, size));
  return fmt::format("Mesh({})", fmt::join(parts, ", "));
}

bool operator==(const Mesh& a, const Mesh& b) {
  return a.state_ == b.state_ ||
         (a.state_->names == b.state_->names && a.state_->grid.shape == b.state_->grid.shape &&
          a.state_->grid.devices == b.state_->grid.devices);
}

std::ostream& operator<<(std::ostream& os, const Mesh& m) { return os << m.to_string(); }

int axis_position(const Mesh& mesh, const std::string& name) {
  const auto& names = mesh.axis_names();
  const auto it = std::find(names.begin(), names.end(), name);
  return it == names.end() ? -1 : static_cast<int>(it - names.begin());
}

Mesh make_mesh(const std::vector<std::pair<std::string, std::int64_t>>& axes, std::vector<Device> all,
               Where w) {
  const Site site(w);
  Shape shape;
  std::vector<std::string> names;
  for (const auto& [axis, size] : axes) {
    if (size < 1)
      throw ShardingError(
          fmt::format("make_mesh: axis '{}' has size {}. Sizes are at least 1. Correct it.", axis, size));
    names.push_back(axis);
    shape.push_back(size);
  }
  check_axis_names("make_mesh", names, shape);
  if (all.empty()) all = devices();
  const std::int64_t wanted = elements_or_most(shape);
  if (wanted > static_cast<std::int64_t>(all.size()))
    throw DeviceError(fmt::format(
        "make_mesh: a mesh of shape {} needs {}, but gets {}. The product of the sizes must not exceed the "
        "number "
        "of devices. Use smaller sizes, or more virtual devices ({}).",
        to_string(shape), count_text(wanted, "device"), all.size(), what_sets_devices(all.front().platform)));
  all.erase(all.begin() + wanted, all.end());
  return Mesh({shape, std::move(all)}, std::move(names));
}
Mesh make_mesh(const Shape& sizes, const std::vector<std::string>& axis_names, std::vector<Device> devices,
               Where w) {
  const Site site(w);
  if (sizes.size() != axis_names.size())
    throw ShardingError(fmt::format(
        "make_mesh: {} sizes {} and {}. Every dimension has one name. Give as many names as sizes.",
        sizes.size(), to_string(sizes), count_text(axis_names.size(), "axis name")));
  std::vector<std::pair<std::string, std::int64_t>> axes;
  for (std::size_t k = 0; k < sizes.size(); k++) axes.emplace_back(axis_names[k], sizes[k]);
  return make_mesh(axes, std::move(devices), w);
}

std::string PartitionSpec::to_string() const {
  std::vector<std::string> items;
  for (const SpecEntry& e : entries_) items.push_back(entry_string(e));
  if (unreduced_.empty()) return "PartitionSpec" + tuple_of(items);
  items.push_back(fmt::format("unreduced={{{}}}", quoted_list(unreduced_)));
  return fmt::format("PartitionSpec({})", fmt::join(items, ", "));
}

void PartitionSpec::add(UnreducedAxes sums) {
  unreduced_ = std::move(sums.names);
  std::sort(unreduced_.begin(), unreduced_.end());
}

std::ostream& operator<<(std::ostream& os, const PartitionSpec& p) { return os << p.to_string(); }

NamedSharding::NamedSharding(Mesh mesh, PartitionSpec spec, Where w)
    : mesh_(std::move(mesh)), spec_(std::move(spec)), sharding_(named_sharding(mesh_, spec_, w)) {}

std::ostream& operator<<(std::ostream& os, const NamedSharding& s) { return os << Sharding(s); }

std::string python_tuple(const Shape& shape) {
  std::vector<std::string> items;
  for (std::int64_t n : shape) items.push_back(std::to_string(n));
  return tuple_of(items);
}

}  // namespace shardarray
