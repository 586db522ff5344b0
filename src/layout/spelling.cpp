#include "layout/spelling.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <set>

#include "base/quoted.h"
#include "layout/axes.h"
#include "layout/factor.h"
#include "layout/sharding_impl.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

// A part of a mesh axis that is one sub-axis: coordinates [pre, size] of the axis, most significant first.
struct AxisPart {
  SubAxis sub;       ///< over the devices
  std::size_t axis;  ///< index of the mesh axis
  std::int32_t pre;  ///< within the mesh axis
};

// All mesh axes as sub-axes of `order`; nullopt if the mesh has other devices or does not factor over the order.
std::optional<std::vector<AxisPart>> mesh_parts(const Mesh& mesh, const DeviceOrder* order) {
  const OrderRef& mesh_order = order_of(mesh);
  if (mesh_order->sorted() != order->sorted()) return std::nullopt;
  std::vector<AxisList> axes;
  std::int32_t pre = 1;
  for (const auto& [name, size] : mesh.shape()) {
    axes.push_back({{pre, static_cast<std::int32_t>(size)}});
    pre *= static_cast<std::int32_t>(size);
  }
  const Layout* layout = in_order(Layout::of(mesh_order.get(), std::move(axes)), order);
  if (!layout) return std::nullopt;
  std::vector<AxisPart> parts;
  for (int k = 0; k < layout->rank(); k++) {
    std::int32_t within = 1;
    for (SubAxis a : layout->dims()[k]) {
      parts.push_back({a, static_cast<std::size_t>(k), within});
      within *= a.size;
    }
  }
  return parts;
}

// `axes` as parts of mesh axes, adjacent parts of one axis merged: sub.size is the size of the part. nullopt if it does not fit.
std::optional<std::vector<AxisPart>> in_parts(const AxisList& axes, const std::vector<AxisPart>& parts) {
  std::vector<AxisPart> out;
  for (SubAxis a : axes)
    while (a.size > 1) {
      const auto it = std::find_if(parts.begin(), parts.end(), [&](const AxisPart& p) {
        return p.sub.pre <= a.pre && a.pre < end_of(p.sub) && a.pre % p.sub.pre == 0 &&
               end_of(p.sub) % a.pre == 0;
      });
      if (it == parts.end()) return std::nullopt;
      const std::int32_t taken = std::gcd(a.size, end_of(it->sub) / a.pre);
      if (taken == 1) return std::nullopt;
      const AxisPart part{{a.pre, taken}, it->axis, it->pre * (a.pre / it->sub.pre)};
      if (!out.empty() && out.back().axis == part.axis && out.back().pre * out.back().sub.size == part.pre)
        out.back().sub.size *= taken;
      else out.push_back(part);
      a = {a.pre * taken, a.size / taken};
    }
  return out;
}

// The names of `axes`, `x` or `x:(1)2` for a part; nullopt if the mesh does not fit. `partial`: may axes be split?
std::optional<std::vector<std::string>> names_of(const AxisList& axes, const DeviceOrder* order,
                                                 const Mesh* mesh, bool partial) {
  const auto parts = mesh ? mesh_parts(*mesh, order) : std::nullopt;
  const auto chosen = parts ? in_parts(axes, *parts) : std::nullopt;
  if (!chosen) return std::nullopt;
  std::vector<std::string> out;
  for (const AxisPart& p : *chosen) {
    const auto [name, size] = mesh->shape()[p.axis];
    const bool whole = p.pre == 1 && p.sub.size == size;
    if (!whole && !partial) return std::nullopt;
    out.push_back(whole ? name : fmt::format("{}:({}){}", name, p.pre, p.sub.size));
  }
  return out;
}

// The layout over the mesh's own device order if that can express it; `order` keeps that alive.
const Layout& on_mesh(const Layout& layout, const Mesh* mesh, OrderRef& order) {
  order = mesh ? order_of(*mesh) : nullptr;
  const Layout* const there = mesh ? in_order(&layout, order.get()) : nullptr;
  return there ? *there : layout;
}
// The names of the axes that shard dimension d.
std::optional<std::vector<std::string>> dim_names(const Layout& layout, int d, const Mesh* mesh,
                                                  bool partial) {
  OrderRef order;
  const Layout& l = on_mesh(layout, mesh, order);
  return names_of(l.dims()[d], l.order(), mesh, partial);
}
// The names of the axes of the partial sum.
std::optional<std::vector<std::string>> summand_names(const Layout& layout, const Mesh* mesh, bool partial) {
  OrderRef order;
  const Layout& l = on_mesh(layout, mesh, order);
  return names_of(l.unreduced(), l.order(), mesh, partial);
}

std::optional<Sharding> as_named(const Layout& layout, const Mesh& mesh) {
  std::vector<SpecEntry> entries;
  for (int d = 0; d < layout.rank(); d++) {
    const auto names = dim_names(layout, d, &mesh, false);
    if (!names) return std::nullopt;
    if (names->empty()) entries.push_back(none);
    else if (names->size() == 1) entries.push_back((*names)[0]);
    else entries.push_back(AxisNames{*names});
  }
  while (!entries.empty() && entries.back().names.empty()) entries.pop_back();
  const auto sums = summand_names(layout, &mesh, false);
  if (!sums) return std::nullopt;
  return NamedSharding(mesh, PartitionSpec(std::move(entries), UnreducedAxes{*sums}));
}

Sharding as_positional(const Layout& layout, const std::vector<Device>& devices) {
  PositionalSpelling out;
  for (int d = 0; d < layout.rank(); d++) out.shape.push_back(layout.tiles(d));
  out.sets.resize(static_cast<std::size_t>(num_elements(out.shape)));
  for (std::size_t k = 0; k < devices.size(); k++) {
    const int p = layout.order()->position(devices[k]);
    std::int64_t tile = 0;
    for (int d = 0; d < layout.rank(); d++) tile = tile * layout.tiles(d) + layout.tile_index(d, p);
    out.sets[tile].push_back(static_cast<int>(k));
  }
  return make_sharding(std::move(out), devices);
}

// Whether `s` applies to values of this rank.
bool fits(const Sharding& s, int rank) {
  if (const auto* named = std::get_if<NamedSpelling>(&s.impl()->spelling))
    return static_cast<std::size_t>(rank) >= named->spec.entries().size();
  if (const auto* positional = std::get_if<PositionalSpelling>(&s.impl()->spelling))
    return s.is_fully_replicated() || static_cast<std::size_t>(rank) == positional->shape.size();
  return true;
}

}  // namespace

const Mesh* mesh_of(const Sharding& s) {
  const auto* named = std::get_if<NamedSpelling>(&s.impl()->spelling);
  return named ? &named->mesh : nullptr;
}

static Sharding spell_placement(const Layout* layout, std::span<const Sharding> like) {
  const LayoutRef canonical = canonical_layout(placement_of(*layout));
  const DeviceOrder* devices = layout->order()->sorted();
  for (const Sharding& s : like) {
    if (DeviceOrder::shared(s.device_assignment())->sorted() != devices) continue;
    if (fits(s, layout->rank()) && layout_of(s, layout->rank()) == canonical.get()) return s;
    if (const Mesh* mesh = mesh_of(s)) {
      if (auto named = as_named(*canonical, *mesh)) return *named;
    } else if (layout->unreduced().empty() &&
               std::holds_alternative<PositionalSpelling>(s.impl()->spelling)) {
      return as_positional(*canonical, s.device_assignment());
    }
  }
  if (!layout->unreduced().empty())
    throw InternalError(fmt::format("spell: no mesh is known that has the axes of {}. Please report this.",
                                    layout->to_string()));
  if (devices->size() == 1) return SingleDeviceSharding(devices->devices()[0]);
  return as_positional(*canonical, devices->devices());
}

Sharding spell(const Layout* layout, std::span<const Sharding> like) {
  Sharding s = spell_placement(layout, like);
  if (layout_of(s, layout->rank()) == layout) return s;
  const auto impl = s.impl()->shared_from_this();  // without the layout that `s` may already hold
  const auto both =
      std::make_shared<std::pair<std::shared_ptr<const ShardingImpl>, LayoutRef>>(impl, layout->ref());
  return Sharding(std::shared_ptr<const ShardingImpl>(both, impl.get()));
}

std::string axis_names(const AxisList& axes, const DeviceOrder* order, const Mesh* mesh) {
  const auto names = names_of(axes, order, mesh, true);
  return names ? fmt::format("{{{}}}", fmt::join(*names, ",")) : to_string(axes);
}

std::string spec_text(const Layout& layout, const Mesh* mesh) {
  std::vector<std::string> axes;
  axes.reserve(static_cast<std::size_t>(layout.rank()));
  for (int d = 0; d < layout.rank(); d++)
    axes.push_back(axis_names(layout.dims()[static_cast<std::size_t>(d)], layout.order(), mesh));
  return fmt::format("[{}]", fmt::join(axes, ", "));
}

namespace {

// A mesh whose axes may be split, with names for the parts.
class SplitMesh {
 public:
  explicit SplitMesh(const Mesh& mesh) : axes_(mesh.shape()) {
    for (const auto& [name, size] : axes_) {
      cuts_.push_back({1, static_cast<std::int32_t>(size)});
      taken_.insert(name);
    }
  }
  void cut(const AxisPart& p) { cuts_[p.axis].insert({p.pre, p.pre * p.sub.size}); }
  // Names the parts; false if they overlap.
  bool name_parts() {
    for (std::size_t k = 0; k < axes_.size(); k++) {
      auto& [name, size] = axes_[k];
      int number = 0;
      for (auto at = cuts_[k].begin(); std::next(at) != cuts_[k].end(); ++at) {
        const std::int32_t next = *std::next(at);
        if (next % *at != 0) return false;
        std::string part = name;
        while (cuts_[k].size() > 2 && taken_.contains(part)) part = fmt::format("{}{}", name, ++number);
        taken_.insert(part);
        names_[{k, *at}] = part;
        shape_.push_back(fmt::format("{{{}, {}}}", in_quotes(part), next / *at));
      }
      if (cuts_[k].size() == 1) shape_.push_back(fmt::format("{{{}, 1}}", in_quotes(name)));
      if (cuts_[k].size() > 2) in_parts_.push_back(name);
    }
    return true;
  }
  void add_names(const AxisPart& p, std::vector<std::string>& to) const {
    for (auto at = cuts_[p.axis].find(p.pre); *at < p.pre * p.sub.size; ++at)
      to.push_back(names_.at({p.axis, *at}));
  }
  // C++ that makes it from `devices`.
  std::string code(const std::string& devices) const {
    return fmt::format("make_mesh({{{}}}, {})", fmt::join(shape_, ", "), devices);
  }
  const std::vector<std::string>& in_parts() const { return in_parts_; }

 private:
  std::vector<std::pair<std::string, std::int64_t>> axes_;
  std::vector<std::set<std::int32_t>> cuts_;
  std::set<std::string> taken_;
  std::map<std::pair<std::size_t, std::int32_t>, std::string> names_;
  std::vector<std::string> shape_, in_parts_;
};

// P("x", none, axes("y", "z"), unreduced("w")).
std::string spec_code(const std::vector<std::vector<std::string>>& dims,
                      const std::vector<std::string>& sums) {
  const auto all = [](const std::vector<std::string>& names) {
    std::vector<std::string> texts(names.size());
    std::ranges::transform(names, texts.begin(), in_quotes);
    return fmt::format("{}", fmt::join(texts, ", "));
  };
  std::vector<std::string> entries;
  for (const auto& names : dims) {
    const std::string text = all(names);
    entries.push_back(names.empty() ? "none" : names.size() == 1 ? text : "axes(" + text + ")");
  }
  while (!entries.empty() && entries.back() == "none") entries.pop_back();
  if (!sums.empty()) entries.push_back(fmt::format("unreduced({})", all(sums)));
  return fmt::format("P({})", fmt::join(entries, ", "));
}

// nullopt if the mesh does not fit.
struct SplitSpec {
  SplitMesh mesh;
  std::string spec;  // C++, with the names of the parts
};
std::optional<SplitSpec> split_spec(const Layout& layout, const Mesh& mesh) {
  OrderRef order;
  const Layout& l = on_mesh(layout, &mesh, order);
  const auto parts = mesh_parts(mesh, l.order());
  if (!parts) return std::nullopt;
  std::vector<AxisList> lists(l.dims().begin(), l.dims().end());
  lists.push_back(l.unreduced());
  std::vector<std::vector<AxisPart>> chosen;
  SplitMesh split(mesh);
  for (const AxisList& axes : lists) {
    auto of_axes = in_parts(axes, *parts);
    if (!of_axes) return std::nullopt;
    for (const AxisPart& p : *of_axes) split.cut(p);
    chosen.push_back(std::move(*of_axes));
  }
  if (!split.name_parts()) return std::nullopt;
  std::vector<std::vector<std::string>> names(chosen.size());
  for (std::size_t k = 0; k < chosen.size(); k++)
    for (const AxisPart& p : chosen[k]) split.add_names(p, names[k]);
  const std::vector<std::string> sums = std::move(names.back());
  names.pop_back();
  return SplitSpec{std::move(split), spec_code(names, sums)};
}

// C++: `devices("cpu")` for the first devices, or `{devices("cpu")[3], devices("cpu")[1]}`. nullopt for described machines, since only the
// user knows how they were made, and for lists too long to read.
std::optional<std::string> devices_code(const std::vector<Device>& devices) {
  constexpr std::size_t most_named = 8;
  const std::string& platform = devices[0].platform;
  if (platform != "cpu" && platform != "cuda") return std::nullopt;
  const std::string all = fmt::format("devices(\"{}\")", platform);
  std::vector<std::string> each;
  bool first = true;
  for (std::size_t k = 0; k < devices.size(); k++) {
    each.push_back(fmt::format("{}[{}]", all, devices[k].id));
    first = first && devices[k].id == static_cast<int>(k);
  }
  if (first) return all;
  if (devices.size() > most_named) return std::nullopt;
  return fmt::format("{{{}}}", fmt::join(each, ", "));
}

}  // namespace

ShardingCode sharding_code(const Layout& layout, const Mesh* mesh) {
  if (mesh)
    if (const auto split = split_spec(layout, *mesh)) {
      const auto& in_parts = split->mesh.in_parts();
      const std::string on = in_parts.empty() ? "mesh" : split->mesh.code("mesh.devices()");
      return {fmt::format("NamedSharding({}, {})", on, split->spec), in_parts};
    }
  const std::vector<Device>& devices = layout.order()->devices();
  const auto split = split_spec(layout, Mesh({{static_cast<std::int64_t>(devices.size())}, devices}, {"x"}));
  const auto code = devices_code(devices);
  if (!split || !code) return {spec_text(layout, mesh), {}};
  return {fmt::format("NamedSharding({}, {})", split->mesh.code(*code), split->spec), {}};
}

std::string dim_suffix(const Layout& layout, int d, const Mesh* mesh) {
  if (layout.dims()[d].empty()) return "";
  const auto names = dim_names(layout, d, mesh, true);
  if (!names) return fmt::format("@{}", layout.tiles(d));
  return names->size() == 1 ? "@" + (*names)[0] : fmt::format("@({})", fmt::join(*names, ","));
}

std::string summands_suffix(const Layout& layout, const Mesh* mesh) {
  if (layout.unreduced().empty()) return "";
  const auto names = summand_names(layout, mesh, true);
  return names ? fmt::format("{{U:{}}}", fmt::join(*names, ","))
               : fmt::format("{{U:{}}}", product(layout.unreduced()));
}

std::string type_string(DType dtype, const Shape& shape, const Layout& layout, const Mesh* mesh) {
  std::vector<std::string> sizes;
  for (std::size_t d = 0; d < shape.size(); d++)
    sizes.push_back(std::to_string(shape[d]) + dim_suffix(layout, static_cast<int>(d), mesh));
  return fmt::format("{}[{}]{}", short_name(dtype), fmt::join(sizes, ","), summands_suffix(layout, mesh));
}

}  // namespace shardarray
