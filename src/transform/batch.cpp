// vmap: a leading dimension on every node that depends on a mapped input.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "graph/trace_state.h"
#include "ops/prims.h"
#include "shardarray/core.h"
#include "shardarray/ops.h"
#include "transform/trace.h"

namespace shardarray {

static Batched with_leading_dimension(const BatchArgs& b) {
  Arrays in(b.in.begin(), b.in.end());
  for (std::size_t k = 0; k < in.size(); k++)
    if (!b.mapped[k]) in[k] = add_leading(in[k], b.axis->size);
  Arrays out = record_again(b.node, in);
  const std::size_t count = out.size();
  return {std::move(out), std::vector<bool>(count, true)};
}

Arrays batch_graph(const Graph& g, std::span<const Array> args, std::vector<bool> mapped, const std::shared_ptr<const Axis>& axis,
                   std::vector<bool>& out_mapped) {
  ArrayMap<bool> is_mapped;
  for (std::size_t k = 0; k < args.size(); k++)
    if (mapped[k]) is_mapped[key(args[k])] = true;
  // an argument may stand for two inputs, mapped and not: name it apart
  Arrays named(args.begin(), args.end());
  for (std::size_t k = 0; k < named.size(); k++)
    if (mapped[k]) {
      is_mapped.erase(key(args[k]));
      named[k] = record(op_identity, {args[k]});
      is_mapped[key(named[k])] = true;
    }
  Arrays out = replay(g, named, [&](Node* n, std::span<const Array> in) {
    std::vector<bool> m;
    for (const Array& a : in) m.push_back(is_mapped.contains(key(a)));
    const bool bound_here = n->attrs().axis == axis;
    if (!bound_here && std::none_of(m.begin(), m.end(), [](bool x) { return x; })) return record_again(*n, in);
    const BatchArgs args_of{*n, in, m, axis, calculus()};
    Batched r = n->op->batch ? n->op->batch(args_of) : with_leading_dimension(args_of);
    for (std::size_t k = 0; k < r.out.size(); k++)
      if (r.mapped[k]) is_mapped[key(r.out[k])] = true;
    return r.out;
  });
  for (const Array& o : out) out_mapped.push_back(o.has_value() && is_mapped.contains(key(o)));
  return out;
}

namespace core {

static std::string plural_line(std::int64_t size, const std::vector<const VmapArg*>& who, std::size_t groups, bool first) {
  const VmapArg& a = *who[0];
  const std::string where = fmt::format("axis {} of argument {} of type {}", *a.axis, a.path, to_string(type_of(a.array)));
  if (who.size() == 1) return fmt::format("  * one axis had size {}: {};\n", size, where);
  return fmt::format("  * {} axes ({} of them) had size {}, e.g. {};\n", first && groups > 1 ? "most" : "some", who.size(), size, where);
}

static std::int64_t mapped_size(std::span<const VmapArg> args, std::optional<std::int64_t> axis_size, const char* function) {
  std::map<std::int64_t, std::vector<const VmapArg*>> sizes;
  for (const VmapArg& a : args) {
    if (!a.axis) continue;
    const Type& t = type_of(a.array, function);
    const auto rank = static_cast<std::int64_t>(t.shape.size());
    if (*a.axis < -rank || *a.axis >= rank)
      throw ShapeError(fmt::format(
          "{}: was requested to map its argument {} along axis {}, which implies that its rank should be at least {}, but is only {} "
          "(its shape is {}).",
          function, a.path, *a.axis, *a.axis < 0 ? -*a.axis : *a.axis + 1, rank, to_string(t.shape)));
    sizes[t.shape[static_cast<std::size_t>(*a.axis < 0 ? *a.axis + rank : *a.axis)]].push_back(&a);
  }
  if (sizes.empty() && !axis_size)
    throw ShapeError(fmt::format("{}: no argument is mapped. At least one in_axes entry must be an axis, or axis_size given.", function));
  if (sizes.size() > 1) {
    std::vector<std::pair<std::int64_t, std::vector<const VmapArg*>>> groups(sizes.begin(), sizes.end());
    std::stable_sort(groups.begin(), groups.end(), [](auto& a, auto& b) { return a.second.size() > b.second.size(); });
    std::string text = fmt::format("{}: got inconsistent sizes for array axes to be mapped:\n", function);
    for (std::size_t k = 0; k < groups.size(); k++) text += plural_line(groups[k].first, groups[k].second, groups.size(), k == 0);
    text.resize(text.size() - 2);
    throw ShapeError(text + ". Mapped axes must have one size.");
  }
  if (!sizes.empty() && axis_size && *axis_size != sizes.begin()->first)
    throw ShapeError(fmt::format("{}: Specified axis_size {} doesn't match received axis_size {}. Leave axis_size out.", function,
                                 *axis_size, sizes.begin()->first));
  return sizes.empty() ? *axis_size : sizes.begin()->first;
}

VmapResult vmap(const std::function<Arrays(std::span<const Array>)>& f, std::span<const VmapArg> args,
                const std::string& axis_name, std::optional<std::int64_t> axis_size, const char* function, Where w) {
  const Site site(w);
  VmapResult result;
  result.size = mapped_size(args, axis_size, function);
  auto axis = std::make_shared<const Axis>(Axis{axis_name, result.size});
  std::vector<Type> types;
  Arrays all;
  std::vector<bool> mapped;
  for (const VmapArg& a : args) {
    Type t = type_of(a.array, function);
    mapped.push_back(a.axis.has_value());
    all.push_back(a.axis ? moveaxis(a.array, *a.axis, 0) : a.array);
    if (a.axis) t.shape.erase(static_cast<std::size_t>(*a.axis < 0 ? *a.axis + static_cast<std::int64_t>(t.shape.size()) : *a.axis));
    types.push_back(t);
  }
  auto& scope = trace_state().axes;
  const std::size_t depth = scope.size();
  scope.push_back(axis);
  struct Pop {
    std::size_t depth;
    ~Pop() { trace_state().axes.resize(depth); }
  } pop{depth};
  const Graph g = trace(f, types, all, function);
  mapped.resize(all.size(), false);
  result.out = batch_graph(g, all, mapped, axis, result.mapped);
  return result;
}

Array place_axis(const VmapResult& r, std::size_t k, std::optional<std::int64_t> axis, const std::string& axis_name,
                 const char* function) {
  const Array& x = r.out[k];
  if (!x.has_value()) return x;
  if (!axis) {
    if (!r.mapped[k]) return x;
    throw ShapeError(fmt::format("{}: has mapped output (axis_name='{}') but out_axes is none. Reduce it over the axis, or give an axis.",
                                 function, axis_name));
  }
  const Array full = r.mapped[k] ? x : add_leading(x, r.size);
  const auto rank = static_cast<std::int64_t>(full.shape().size());
  if (*axis < -rank || *axis >= rank)
    throw ShapeError(fmt::format("{}: out_axes: axis {} is out of bounds for an output {} of rank {}.", function, *axis,
                                 to_string(type_of(full)), rank));
  return moveaxis(full, 0, *axis);
}

}  // namespace core
}  // namespace shardarray
