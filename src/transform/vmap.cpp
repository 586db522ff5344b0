// vmap's erased core: sizes, the trace of one row, placement of the mapped dimension.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "ops/record.h"
#include "shardarray/ops.h"
#include "transform/map_axes.h"

namespace shardarray {

using core::VmapArg;

static std::string plural_line(std::int64_t size, const std::vector<const VmapArg*>& who, std::size_t groups,
                               bool first) {
  const VmapArg& a = *who[0];
  const std::string where =
      fmt::format("axis {} of argument {} of type {}", *a.axis, a.path, to_string(type_of(a.array)));
  if (who.size() == 1) return fmt::format("  * one axis had size {}: {};\n", size, where);
  return fmt::format("  * {} axes ({} of them) had size {}, e.g. {};\n",
                     first && groups > 1 ? "most" : "some", who.size(), size, where);
}

std::int64_t mapped_size(std::span<const VmapArg> args, std::optional<std::int64_t> axis_size,
                         const char* function) {
  std::map<std::int64_t, std::vector<const VmapArg*>> sizes;
  for (const VmapArg& a : args) {
    if (!a.axis) continue;
    const Type& t = type_of(a.array, function);
    const auto rank = static_cast<std::int64_t>(t.shape.size());
    const auto axis = static_cast<std::uint64_t>(*a.axis);  // any value is possible
    if (*a.axis < -rank || *a.axis >= rank)
      throw ShapeError(fmt::format(
          "{}: was requested to map its argument {} along axis {}, which implies that its rank should be at "
          "least {}, but is only {} (its shape is {}).",
          function, a.path, *a.axis, *a.axis < 0 ? 0 - axis : axis + 1, rank, to_string(t.shape)));
    sizes[t.shape[static_cast<std::size_t>(*a.axis < 0 ? *a.axis + rank : *a.axis)]].push_back(&a);
  }
  if (axis_size && *axis_size < 0)
    throw ShapeError(fmt::format("{}: axis_size is {}. A size is not negative. Leave axis_size out.",
                                 function, *axis_size));
  if (sizes.empty() && !axis_size)
    throw ShapeError(fmt::format(
        "{}: no argument is mapped. At least one in_axes entry must be an axis, or axis_size given.",
        function));
  if (sizes.size() > 1) {
    std::vector<std::pair<std::int64_t, std::vector<const VmapArg*>>> groups(sizes.begin(), sizes.end());
    std::stable_sort(groups.begin(), groups.end(),
                     [](auto& a, auto& b) { return a.second.size() > b.second.size(); });
    std::string text = fmt::format("{}: got inconsistent sizes for array axes to be mapped:\n", function);
    for (std::size_t k = 0; k < groups.size(); k++)
      text += plural_line(groups[k].first, groups[k].second, groups.size(), k == 0);
    text.resize(text.size() - 2);
    throw ShapeError(text + ". Mapped axes must have one size.");
  }
  if (!sizes.empty() && axis_size && *axis_size != sizes.begin()->first)
    throw ShapeError(
        fmt::format("{}: Specified axis_size {} doesn't match received axis_size {}. Leave axis_size out.",
                    function, *axis_size, sizes.begin()->first));
  return sizes.empty() ? *axis_size : sizes.begin()->first;
}

MappedRows rows_of(std::span<const VmapArg> args) {
  MappedRows rows;
  for (const VmapArg& a : args) {
    Type t = type_of(a.array);
    const auto rank = static_cast<std::int64_t>(t.shape.size());
    if (a.axis) t.shape.erase(static_cast<std::size_t>(*a.axis < 0 ? *a.axis + rank : *a.axis));
    rows.args.push_back(a.axis ? moveaxis(a.array, *a.axis, 0) : a.array);
    rows.types.push_back(std::move(t));
    rows.mapped.push_back(a.axis.has_value());
  }
  return rows;
}

namespace core {

bool tracing() { return !trace_state().open.empty(); }

VmapResult vmap(MapBody f, std::span<const VmapArg> args, const std::string& axis_name,
                std::optional<std::int64_t> axis_size, const char* function, Where w) {
  const Site site(w, function);
  VmapResult result;
  result.size = mapped_size(args, axis_size, function);
  auto axis = std::make_shared<const Axis>(Axis{axis_name, result.size});
  auto [all, types, mapped] = rows_of(args);
  const ScopedAxis scope(axis);
  const Graph g = traced(f, types, all, function);
  const Site named({}, function);  // only now: what f records has its own names
  mapped.resize(all.size(), false);
  result.out = batch_graph(g, all, mapped, axis, result.mapped);
  return result;
}

Array place_axis(const VmapResult& r, std::size_t k, std::optional<std::int64_t> axis,
                 const std::string& axis_name, const char* function) {
  const Array& x = r.out[k];
  if (!x.has_value()) return x;
  if (!axis) {
    if (!r.mapped[k]) return x;
    throw ShapeError(
        fmt::format("{}: has mapped output (axis_name='{}') but out_axes is none. Reduce it over the axis, "
                    "or give an axis.",
                    function, axis_name));
  }
  const Site named({}, function);
  const Array full = r.mapped[k] ? x : add_leading(x, r.size);
  const auto rank = static_cast<std::int64_t>(full.shape().size());
  if (*axis < -rank || *axis >= rank)
    throw ShapeError(fmt::format("{}: out_axes: axis {} is out of bounds for an output {} of rank {}.",
                                 function, *axis, to_string(type_of(full)), rank));
  return moveaxis(full, 0, *axis);
}

}  // namespace core
}  // namespace shardarray
