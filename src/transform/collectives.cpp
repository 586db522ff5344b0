// The collectives' public functions: they check, reduce everything to untiled collectives over single axes, and record.
#include "shardarray/collectives.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "base/sizes.h"
#include "graph/trace_state.h"
#include "ops/api.h"
#include "ops/record.h"
#include "shardarray/ops.h"

namespace shardarray {

namespace {

using AxisRef = std::shared_ptr<const Axis>;

std::vector<AxisRef> find_axes(const NamedAxes& names, const char* function) {
  if (names.names.empty()) throw Error(fmt::format("{}: no axis is named. Give at least one.", function));
  std::vector<AxisRef> axes;
  for (const std::string& n : names.names) {
    axes.push_back(find_axis(n, function));
    if (std::count(axes.begin(), axes.end(), axes.back()) > 1)
      throw Error(fmt::format("{}: axis '{}' is named twice. Name each once.", function, n));
  }
  return axes;
}

std::int64_t product(const std::vector<AxisRef>& axes) {
  std::int64_t n = 1;
  for (const AxisRef& a : axes) n = mul_sizes(n, a->size);
  return n;
}

void set_groups(Attrs& a, const Groups& groups, const std::vector<AxisRef>& axes, bool equal,
                const char* function) {
  if (groups.empty()) return;
  if (axes.size() > 1)
    throw Error(
        fmt::format("{}: groups over several axes. Map one axis of the product's size instead.", function));
  std::vector<int> seen;
  for (const auto& g : groups) {
    seen.insert(seen.end(), g.begin(), g.end());
    a.hi.push_back(static_cast<std::int64_t>(g.size()));
    for (int p : g) a.lo.push_back(p);
  }
  std::sort(seen.begin(), seen.end());
  bool all = static_cast<std::int64_t>(seen.size()) == axes[0]->size;
  for (std::size_t k = 0; all && k < seen.size(); k++) all = seen[k] == static_cast<int>(k);
  if (!all)
    throw Error(
        fmt::format("{}: groups must cover all indices exactly once, but {} do not cover 0..{} of axis '{}'.",
                    function, groups, axes[0]->size - 1, axes[0]->name));
  if (equal && std::any_of(a.hi.begin(), a.hi.end(), [&](std::int64_t n) { return n != a.hi[0]; }))
    throw Error(fmt::format("{}: groups must have one size, but got {}. Only reductions take others.",
                            function, groups));
}

// Splitting over an axis requires at least one position.
void need_positions(const std::vector<AxisRef>& axes, const char* function) {
  for (const AxisRef& a : axes)
    if (a->size == 0)
      throw ShapeError(
          fmt::format("{}: the axis '{}' has size 0. What is cut into as many parts as an axis has positions "
                      "needs one at least. Map an axis that is not empty.",
                      function, a->name));
}

// The number of positions that one position communicates with.
std::int64_t parts_of(const Attrs& a, const std::vector<AxisRef>& axes) {
  return a.hi.empty() ? product(axes) : a.hi[0];
}

std::size_t dim_of(int axis, std::size_t rank, const char* option, const char* function) {
  const int r = static_cast<int>(rank);
  if (axis < -r || axis >= r)
    throw ShapeError(
        fmt::format("{}: {} {} is out of bounds for a value of rank {}.", function, option, axis, r));
  return static_cast<std::size_t>(axis < 0 ? axis + r : axis);
}
std::int64_t from_end(std::size_t d, std::size_t rank) {
  return static_cast<std::int64_t>(d) - static_cast<std::int64_t>(rank);
}

// Splits dimension d into (parts, rest).
Array split_dim(const Array& x, std::size_t d, std::int64_t parts, const char* function) {
  Shape shape = x.shape();
  if (parts == 0 || shape[d] % parts != 0)
    throw ShapeError(fmt::format("{}: dimension {} of {} must be divisible by the {} parts of the axis.",
                                 function, d, to_string(type_of(x)), parts));
  shape.insert(d + 1, shape[d] / parts);
  shape[d] = parts;
  return primitive::reshape(x, shape);
}
// Merges dimensions d and d + 1.
Array merge_dims(const Array& x, std::size_t d) {
  Shape shape = x.shape();
  shape[d] *= shape[d + 1];
  shape.erase(d + 1);
  return primitive::reshape(x, shape);
}

void check_parts(const Array& x, std::size_t d, std::int64_t parts, const char* option,
                 const char* function) {
  if (x.shape()[d] != parts)
    throw ShapeError(
        fmt::format("{}: {} {} of {} must have the size of the mapped axis, {}. For several rows each say "
                    "{{.tiled = true}}.",
                    function, option, d, to_string(type_of(x)), parts));
}

Array reduce(const Op& op, const Array& x, const NamedAxes& names, const GroupOptions& o,
             const char* function) {
  const auto axes = find_axes(names, function);
  Attrs a;
  set_groups(a, o.groups, axes, false, function);
  type_of(x, function);
  Array r = x;
  for (auto it = axes.rbegin(); it != axes.rend(); ++it) {
    a.axes = {*it};
    r = record(op, {r}, a);
  }
  return r;
}

}  // namespace

std::int64_t axis_size(const NamedAxes& axis, Where w) {
  const Site site(w);
  return product(find_axes(axis, "axis_size"));
}

Array axis_index(const NamedAxes& axis, Where w) {
  const Site site(w, "axis_index");
  Array position;
  for (const AxisRef& one : find_axes(axis, "axis_index")) {
    Attrs a;
    a.axes = {one};
    const Array here = record(op_axis_index, {}, std::move(a));
    position =
        position.has_value()
            ? primitive::add(
                  primitive::mul(position, primitive::like(position, static_cast<double>(one->size))), here)
            : here;
  }
  return position;
}

Array psum(const Array& x, const NamedAxes& axis, const GroupOptions& o, Where w) {
  const Site site(w, "psum");
  const Array operand = type_of(x, "psum").dtype == DType::bool_ ? primitive::cast(x, DType::int32) : x;
  if (is_literal(*x.node())) {  // known without communication
    const auto axes = find_axes(axis, "psum");
    Attrs a;
    set_groups(a, o.groups, axes, false, "psum");
    const std::int64_t parts = parts_of(a, axes);
    return type_of(operand).weak ? operand * parts
                                 : primitive::mul(operand, primitive::like_whole(operand, parts));
  }
  return reduce(op_psum, operand, axis, o, "psum");
}
Array pmean(const Array& x, const NamedAxes& axis, const GroupOptions& o, Where w) {
  const Site site(w, "pmean");
  const auto axes = find_axes(axis, "pmean");
  Attrs a;
  set_groups(a, o.groups, axes, false, "pmean");
  Array sum = psum(x, axis, o, w);
  const bool weak = type_of(sum).weak;
  sum = primitive::cast(sum, api::to_inexact({sum.dtype(), weak}).dtype, weak);
  return sum / primitive::like(sum, static_cast<double>(parts_of(a, axes)));
}
Array pmax(const Array& x, const NamedAxes& axis, const GroupOptions& o, Where w) {
  const Site site(w, "pmax");
  return reduce(op_pmax, x, axis, o, "pmax");
}
Array pmin(const Array& x, const NamedAxes& axis, const GroupOptions& o, Where w) {
  const Site site(w, "pmin");
  return reduce(op_pmin, x, axis, o, "pmin");
}

Permutation ring(std::int64_t n, std::int64_t shift, Where w) {
  const Site site(w, "ring");
  if (n < 1 || n > std::numeric_limits<int>::max())
    throw Error(fmt::format(
        "ring: of {} positions. A ring has at least one, and their numbers are ints. Give axis_size(axis).",
        n));
  Permutation r;
  for (std::int64_t k = 0; k < n; k++)
    r.emplace_back(static_cast<int>(k), static_cast<int>((k + n + shift % n) % n));
  return r;
}

Array ppermute(const Array& x, const NamedAxes& axis, const Permutation& perm, Where w) {
  const Site site(w, "ppermute");
  auto axes = find_axes(axis, "ppermute");
  const std::int64_t n = product(axes);
  Attrs a;
  std::vector<bool> sends(static_cast<std::size_t>(n)), receives = sends;
  for (const auto& [from, to] : perm) {
    if (from < 0 || from >= n || to < 0 || to >= n)
      throw Error(
          fmt::format("ppermute: ({}, {}) is out of range for an axis of size {}. A pair is (source, "
                      "destination), positions count from 0. Correct it.",
                      from, to, n));
    if (sends[static_cast<std::size_t>(from)] || receives[static_cast<std::size_t>(to)])
      throw Error(
          fmt::format("ppermute: sources and destinations must be unique, but {} of ({}, {}) occurs twice. A "
                      "position sends and receives once at most. Remove a pair.",
                      sends[static_cast<std::size_t>(from)] ? "the source" : "the destination", from, to));
    sends[static_cast<std::size_t>(from)] = receives[static_cast<std::size_t>(to)] = true;
    a.lo.push_back(from);
    a.hi.push_back(to);
  }
  const auto& scope = trace_state().axes;  // outermost first
  std::sort(axes.begin(), axes.end(), [&](const AxisRef& p, const AxisRef& q) {
    return std::find(scope.begin(), scope.end(), p) < std::find(scope.begin(), scope.end(), q);
  });
  a.axes = axes;
  return record(op_ppermute, {x}, std::move(a));
}

Array pshuffle(const Array& x, const NamedAxes& axis, const std::vector<int>& perm, Where w) {
  const Site site(w, "pshuffle");
  const std::int64_t n = product(find_axes(axis, "pshuffle"));
  std::vector<int> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  bool all = static_cast<std::int64_t>(perm.size()) == n;
  for (std::size_t k = 0; all && k < sorted.size(); k++) all = sorted[k] == static_cast<int>(k);
  if (!all)
    throw Error(
        fmt::format("pshuffle: `perm` does not represent a permutation: {} of an axis of size {}. It names "
                    "each position once. Correct it.",
                    perm, n));
  Permutation pairs;
  for (std::size_t k = 0; k < perm.size(); k++) pairs.emplace_back(perm[k], static_cast<int>(k));
  return ppermute(x, axis, pairs, w);
}

Array pbroadcast(const Array& x, const NamedAxes& axis, int source, Where w) {
  const Site site(w, "pbroadcast");
  const auto axes = find_axes(axis, "pbroadcast");
  if (source < 0 || source >= product(axes))
    throw Error(fmt::format(
        "pbroadcast: source {} is out of range for an axis of size {}. Positions count from 0. Correct it.",
        source, product(axes)));
  type_of(x, "pbroadcast");
  Array r = x;
  std::int64_t rest = source;
  for (auto it = axes.rbegin(); it != axes.rend(); ++it) {
    Attrs a;
    a.axes = {*it};
    a.lo = {rest % (*it)->size};
    rest /= (*it)->size;
    r = record(op_pbroadcast, {r}, std::move(a));
  }
  return r;
}

Array pswapaxes(const Array& x, const NamedAxes& axis, int dim, const GroupOptions& o, Where w) {
  const int from_front =
      static_cast<int>(dim_of(dim, type_of(x, "pswapaxes").shape.size(), "axis", "pswapaxes"));
  return all_to_all(x, axis, {.split_axis = from_front, .concat_axis = from_front, .groups = o.groups}, w);
}

Array all_gather(const Array& x, const NamedAxes& axis, const AllGatherOptions& o, Where w) {
  const Site site(w, "all_gather");
  const auto axes = find_axes(axis, "all_gather");
  Attrs a;
  set_groups(a, o.groups, axes, true, "all_gather");
  const std::size_t rank = type_of(x, "all_gather").shape.size();
  const std::size_t dim = dim_of(o.axis, o.tiled ? rank : rank + 1, "axis", "all_gather");
  Array r = x;
  for (auto it = axes.rbegin(); it != axes.rend(); ++it) {  // the last name varies fastest
    a.axes = {*it};
    a.dims = {from_end(dim, r.shape().size() + 1)};
    r = record(op_all_gather, {r}, a);
  }
  for (std::size_t k = 1; k < axes.size(); k++) r = merge_dims(r, dim);
  return o.tiled ? merge_dims(r, dim) : r;
}

Array psum_scatter(const Array& x, const NamedAxes& axis, const PsumScatterOptions& o, Where w) {
  const Site site(w, "psum_scatter");
  const auto axes = find_axes(axis, "psum_scatter");
  need_positions(axes, "psum_scatter");
  Attrs a;
  set_groups(a, o.groups, axes, true, "psum_scatter");
  const std::size_t dim = dim_of(o.axis, type_of(x, "psum_scatter").shape.size(), "axis", "psum_scatter");
  if (!o.tiled) check_parts(x, dim, parts_of(a, axes), "axis", "psum_scatter");
  Array r = type_of(x).dtype == DType::bool_ ? primitive::cast(x, DType::int32) : x;
  if (o.tiled) r = split_dim(r, dim, parts_of(a, axes), "psum_scatter");
  for (std::size_t k = axes.size(); k-- > 1;)
    r = split_dim(r, dim, r.shape()[dim] / axes[k]->size, "psum_scatter");
  for (const AxisRef& one : axes) {
    a.axes = {one};
    a.dims = {from_end(dim, r.shape().size())};
    r = record(op_reduce_scatter, {r}, a);
  }
  return r;
}

Array all_to_all(const Array& x, const NamedAxes& axis, const AllToAllOptions& o, Where w) {
  const Site site(w, "all_to_all");
  const auto axes = find_axes(axis, "all_to_all");
  need_positions(axes, "all_to_all");
  Attrs a;
  set_groups(a, o.groups, axes, true, "all_to_all");
  const std::int64_t parts = parts_of(a, axes);
  const std::size_t rank = type_of(x, "all_to_all").shape.size();
  const std::size_t split = dim_of(o.split_axis, rank, "split_axis", "all_to_all");
  const std::size_t concat = dim_of(o.concat_axis, rank, "concat_axis", "all_to_all");
  if (!o.tiled) check_parts(x, split, parts, "split_axis", "all_to_all");
  Array r =
      moveaxis(o.tiled ? split_dim(x, split, parts, "all_to_all") : x, static_cast<std::int64_t>(split), 0);
  for (std::size_t k = axes.size(); k-- > 1;) r = split_dim(r, 0, r.shape()[0] / axes[k]->size, "all_to_all");
  for (std::size_t k = 0; k < axes.size(); k++) {  // one dimension of positions per axis
    const std::int64_t dim = from_end(k, r.shape().size());
    a.axes = {axes[k]};
    a.dims = {dim, dim};
    r = record(op_all_to_all, {r}, a);
  }
  for (std::size_t k = 1; k < axes.size(); k++) r = merge_dims(r, 0);
  r = moveaxis(r, 0, static_cast<std::int64_t>(concat));
  return o.tiled ? merge_dims(r, concat) : r;
}

}  // namespace shardarray
