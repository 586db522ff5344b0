// shard_map: the function sees the local shard of each argument. The manual mesh axes become dimensions of the arguments, and the function
// is mapped over them one by one, the last axis first.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/ceil_div.h"
#include "graph/region.h"
#include "ops/record.h"
#include "transform/map_axes.h"

namespace shardarray {

namespace {

using AxisRef = std::shared_ptr<const Axis>;

struct ManualAxes {
  const Mesh& mesh;
  std::vector<AxisRef> axes;  // in mesh order
  bool partial;
  std::size_t index(const std::string& name) const {
    return static_cast<std::size_t>(
        std::find_if(axes.begin(), axes.end(), [&](const AxisRef& a) { return a->name == name; }) -
        axes.begin());
  }
};

ManualAxes manual_axes(const Mesh& mesh, std::vector<std::string> names) {
  if (names.empty()) names = mesh.axis_names();
  auto region = std::make_shared<Region>();
  region->mesh = mesh;
  region->partial = names.size() < mesh.axis_names().size();
  ManualAxes m{mesh, {}, region->partial};
  for (const std::string& n : names) static_cast<void>(mesh.axis_size(n));  // throws for unknown names
  for (const std::string& n : mesh.axis_names()) {
    if (std::find(names.begin(), names.end(), n) == names.end()) continue;
    auto axis = std::make_shared<Axis>(Axis{n, mesh.axis_size(n), region});
    axis->outer = m.axes.empty() ? nullptr : m.axes.back();
    m.axes.push_back(axis);
  }
  return m;
}

// The axes of dimension d in the spec; empty for missing entries.
std::vector<std::string> names_at(const PartitionSpec& spec, std::size_t d) {
  return d < spec.entries().size() ? spec.entries()[d].names : std::vector<std::string>{};
}

void check_spec(const PartitionSpec& spec, const Type& t, const ManualAxes& m, const std::string& what) {
  if (spec.entries().size() > t.shape.size())
    throw ShardingError(
        fmt::format("shard_map: {} has spec {} of length {}, but its rank is {} ({}). A spec has "
                    "at most one entry for each dimension. Drop entries.",
                    what, spec.to_string(), spec.entries().size(), t.shape.size(), to_string(t)));
  if (!spec.unreduced_axes().empty())
    throw ShardingError(
        fmt::format("shard_map: {} has spec {}. The function sees pieces of values, not summands. Leave out "
                    "unreduced(...), and add up with psum.",
                    what, spec.to_string()));
  std::vector<std::string> seen;
  for (std::size_t d = 0; d < spec.entries().size(); d++)
    for (const std::string& n : names_at(spec, d)) {
      if (m.index(n) == m.axes.size())
        throw ShardingError(
            fmt::format("shard_map: {} has spec {}, but '{}' is no axis that the map is over. Those are {}. "
                        "Name one of them.",
                        what, spec.to_string(), n, [&] {
                          std::vector<std::string> names;
                          for (const AxisRef& a : m.axes) names.push_back(a->name);
                          return fmt::format("{}", fmt::join(names, ", "));
                        }()));
      if (std::find(seen.begin(), seen.end(), n) != seen.end())
        throw ShardingError(
            fmt::format("shard_map: {} has spec {}, which names axis '{}' twice. A mesh axis cuts at most "
                        "one dimension. Remove one of them.",
                        what, spec.to_string(), n));
      seen.push_back(n);
    }
}

// Constrains x to spec over the manual axes; in partial maps other dimensions stay unconstrained.
Array constrained(const Array& x, const PartitionSpec& spec, const ManualAxes& m) {
  Attrs a;
  a.sharding = std::make_shared<const Sharding>(NamedSharding(m.mesh, spec));
  const std::size_t rank = x.shape().size();
  if (m.partial)
    for (std::size_t d = 0; d < rank; d++)
      if (names_at(spec, d).empty())
        a.hi.push_back(static_cast<std::int64_t>(d) - static_cast<std::int64_t>(rank));
  return record(op_constraint, {x}, std::move(a));
}

// [.., a * b * rest, ..] -> [a, b, .., rest, ..]: manual axes first, in mesh order. `which`: the axes that x has.
Array split_axes(const Array& x, const PartitionSpec& spec, const ManualAxes& m, std::vector<bool>& which,
                 const std::string& what) {
  Shape shape;
  std::vector<std::size_t> from(m.axes.size(), 0);
  Shape perm;
  for (std::size_t d = 0; d < x.shape().size(); d++) {
    std::int64_t rest = x.shape()[d], parts = 1;
    for (const std::string& n : names_at(spec, d)) parts *= m.axes[m.index(n)]->size;
    if (rest % parts != 0)
      throw ShapeError(fmt::format(
          "shard_map: {} {}: dimension {} of size {} is not divisible by {}, the size of {}. The function "
          "sees equal pieces: pad it to {}.",
          what, to_string(type_of(x)), d, rest, parts, spec.to_string(), ceil_div(rest, parts) * parts));
    for (const std::string& n : names_at(spec, d)) {
      from[m.index(n)] = shape.size();
      which[m.index(n)] = true;
      shape.push_back(m.axes[m.index(n)]->size);
    }
    shape.push_back(rest / parts);
  }
  for (std::size_t k = 0; k < which.size(); k++)
    if (which[k]) perm.push_back(static_cast<std::int64_t>(from[k]));
  for (std::size_t d = 0; d < shape.size(); d++)
    if (std::find(perm.begin(), perm.end(), static_cast<std::int64_t>(d)) == perm.end())
      perm.push_back(static_cast<std::int64_t>(d));
  return primitive::transpose(primitive::reshape(x, shape), perm);
}

// The inverse of split_axes, for a result that has the axes `which`.
Array joined(const Array& given, std::vector<bool> which, const PartitionSpec& spec, const ManualAxes& m,
             std::size_t k) {
  Array x = given;
  const std::string what = fmt::format("result {}", k);
  std::size_t lead = static_cast<std::size_t>(std::count(which.begin(), which.end(), true));
  Type local = type_of(x);
  for (std::size_t d = 0; d < lead; d++) local.shape.erase(0);
  check_spec(spec, local, m, what);
  std::vector<bool> wanted(m.axes.size(), false);
  for (std::size_t d = 0; d < local.shape.size(); d++)
    for (const std::string& n : names_at(spec, d)) wanted[m.index(n)] = true;
  std::size_t at = 0;
  for (std::size_t a = 0; a < m.axes.size(); a++) {
    if (which[a] && !wanted[a])
      throw ShardingError(
          fmt::format("shard_map: {} {} differs along axis '{}', which its spec {} does not name. Name it, "
                      "or combine the values (psum, all_gather).",
                      what, to_string(local), m.axes[a]->name, spec.to_string()));
    if (wanted[a] && !which[a]) {  // replicated along the axis
      Shape shape = x.shape(), dims;
      shape.insert(at, m.axes[a]->size);
      for (std::size_t d = 0; d < shape.size(); d++)
        if (d != at) dims.push_back(static_cast<std::int64_t>(d) - static_cast<std::int64_t>(shape.size()));
      x = primitive::broadcast(x, shape, dims);
    }
    at += wanted[a];
  }
  Shape perm, merged;
  for (std::size_t d = 0; d < local.shape.size(); d++) {
    std::int64_t size = local.shape[d];
    for (const std::string& n : names_at(spec, d)) {
      const auto before =
          std::count(wanted.begin(), wanted.begin() + static_cast<std::ptrdiff_t>(m.index(n)), true);
      perm.push_back(before);
      size *= m.axes[m.index(n)]->size;
    }
    perm.push_back(static_cast<std::int64_t>(at + d));
    merged.push_back(size);
  }
  return constrained(primitive::reshape(primitive::transpose(x, perm), merged), spec, m);
}

}  // namespace

namespace core {

Arrays shard_map(MapBody f, std::span<const ShardMapArg> args, const Mesh& mesh,
                 const std::vector<std::string>& manual,
                 detail::FunctionRef<PartitionSpec(std::size_t)> out_spec, Where w) {
  const Site site(w, "shard_map");
  const ManualAxes m = manual_axes(mesh, manual);
  const std::size_t depth = m.axes.size();
  Arrays all;
  std::vector<Type> types;
  std::vector<std::vector<bool>> mapped;  // argument -> axes
  for (const ShardMapArg& a : args) {
    const Type& t = type_of(a.array, "shard_map");
    const std::string what = "argument " + a.path;
    check_spec(a.spec, t, m, what);
    mapped.emplace_back(depth, false);
    all.push_back(split_axes(constrained(a.array, a.spec, m), a.spec, m, mapped.back(), what));
    Type local = type_of(all.back());
    for (std::size_t k = 0; k < depth; k++)
      if (mapped.back()[k]) local.shape.erase(0);
    types.push_back(std::move(local));
  }
  auto& scope = trace_state().axes;
  const std::size_t before = scope.size();
  scope.insert(scope.end(), m.axes.begin(), m.axes.end());
  struct Pop {
    std::size_t to;
    ~Pop() { trace_state().axes.resize(to); }
  } pop{before};
  Graph g = traced(f, types, all, "shard_map");
  mapped.resize(all.size(), std::vector<bool>(depth, false));
  std::vector<std::vector<bool>> results(g.out.size(), std::vector<bool>(depth, false));
  const auto column = [&](std::size_t k) {
    std::vector<bool> c;
    c.reserve(mapped.size());
    for (const auto& row : mapped) c.push_back(row[k]);
    return c;
  };
  Arrays out;
  for (std::size_t k = depth; k-- > 0;) {
    std::vector<bool> out_mapped;
    if (k > 0) g = calculus().batch(g, column(k), m.axes[k], out_mapped);
    else out = batch_graph(g, all, column(k), m.axes[k], out_mapped);
    for (std::size_t i = 0; i < results.size(); i++) results[i][k] = out_mapped[i];
  }
  for (std::size_t i = 0; i < out.size(); i++)
    if (out[i].has_value()) out[i] = joined(out[i], results[i], out_spec(i), m, i);
  return out;
}

}  // namespace core
}  // namespace shardarray
