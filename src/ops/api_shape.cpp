// The public functions that rearrange.
#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "base/sizes.h"
#include "ops/api.h"
#include "shardarray/ops.h"

namespace shardarray {

// 0, 1, .. n - 1
static Shape identity_permutation(std::size_t n) {
  Shape p = Shape::filled(n, 0);
  std::iota(p.begin(), p.end(), 0);
  return p;
}
static std::int64_t signed_size(const Shape& s) { return static_cast<std::int64_t>(s.size()); }

// ---------------------------------------------------------------- one array
// The shape with its one -1 replaced.
static Shape resolved(const Shape& wanted, const Shape& from) {
  Shape shape = wanted;
  std::int64_t known = 1, *open = nullptr;
  for (std::int64_t& size : shape) {
    if (size < -1 || (size == -1 && open))
      throw ShapeError(fmt::format("reshape: sizes {}. They are not negative; one may be -1. Give the sizes.",
                                   to_string(wanted)));
    if (size == -1) open = &size;
    else known = mul_sizes(known, size);
  }
  const std::int64_t n = num_elements(from);
  if (open && known > 0 && n % known == 0) *open = n / known;
  if ((open && *open == -1) || (!open && known != n))
    throw ShapeError(
        fmt::format("reshape: cannot reshape {} ({} elements) into {}. The number of elements must stay. Use "
                    "-1 for a size "
                    "that follows from the others.",
                    to_string(from), n, to_string(wanted)));
  return shape;
}
Array reshape_fn::operator()(const Array& x, const Shape& shape, Where w) const {
  const Site site(w, "reshape");
  return prim::reshape(x, resolved(shape, type_of(x, "reshape").shape));
}

Array transpose_fn::operator()(const Array& x, const Shape& perm, Where w) const {
  const Site site(w, "transpose");
  const Shape& shape = type_of(x, "transpose").shape;
  Shape p = identity_permutation(shape.size());
  if (perm.empty()) {
    std::reverse(p.begin(), p.end());
  } else {
    if (perm.size() != shape.size())
      throw ShapeError(fmt::format(
          "transpose: permutation {} for shape {}. Every dimension must stand in it once. List all {} axes.",
          to_string(perm), to_string(shape), shape.size()));
    api::axes_of("transpose", perm, shape);
    for (std::size_t k = 0; k < p.size(); k++)
      p[k] = static_cast<std::int64_t>(api::axis_of("transpose", perm[k], shape));
  }
  return prim::transpose(x, p);
}
Array swapaxes_fn::operator()(const Array& x, std::int64_t a, std::int64_t b, Where w) const {
  const Site site(w, "swapaxes");
  const Shape& shape = type_of(x, "swapaxes").shape;
  Shape p = identity_permutation(shape.size());
  std::swap(p[api::axis_of("swapaxes", a, shape)], p[api::axis_of("swapaxes", b, shape)]);
  return prim::transpose(x, p);
}
Array moveaxis_fn::operator()(const Array& x, std::int64_t from, std::int64_t to, Where w) const {
  return (*this)(x, Shape{from}, Shape{to}, w);
}
Array moveaxis_fn::operator()(const Array& x, const Shape& from, const Shape& to, Where w) const {
  const Site site(w, "moveaxis");
  const Shape& shape = type_of(x, "moveaxis").shape;
  if (from.size() != to.size())
    throw ShapeError(
        fmt::format("moveaxis: from {} to {}. Every axis needs a destination. Give two lists of one length.",
                    to_string(from), to_string(to)));
  api::axes_of("moveaxis", from, shape);
  api::axes_of("moveaxis", to, shape);
  Shape p = Shape::filled(shape.size(), -1);
  std::vector<bool> moved(shape.size(), false);
  for (std::size_t k = 0; k < from.size(); k++) {
    const std::size_t source = api::axis_of("moveaxis", from[k], shape);
    p[api::axis_of("moveaxis", to[k], shape)] = static_cast<std::int64_t>(source);
    moved[source] = true;
  }
  std::size_t next = 0;
  for (std::int64_t& d : p) {
    if (d >= 0) continue;
    while (moved[next]) next++;
    d = static_cast<std::int64_t>(next++);
  }
  return prim::transpose(x, p);
}

Array expand_dims_fn::operator()(const Array& x, const AxisSet& axes, Where w) const {
  const Site site(w, "expand_dims");
  const Shape& shape = type_of(x, "expand_dims").shape;
  Shape result = Shape::filled(shape.size() + axes.axes.size(), 0);
  for (std::int64_t a : api::axes_of("expand_dims", axes.axes, result))
    result[static_cast<std::size_t>(a)] = 1;
  const std::int64_t* next = shape.begin();
  for (std::int64_t& size : result)
    if (size == 0) size = *next++;
  return prim::reshape(x, result);
}
Array squeeze_fn::operator()(const Array& x, const AxisSet& axes, Where w) const {
  const Site site(w, "squeeze");
  const Shape& shape = type_of(x, "squeeze").shape;
  const Shape chosen = api::axes_of("squeeze", axes.axes, shape);
  Shape result;
  for (std::size_t d = 0; d < shape.size(); d++) {
    const bool named = std::find(chosen.begin(), chosen.end(), static_cast<std::int64_t>(d)) != chosen.end();
    if (named && shape[d] != 1)
      throw ShapeError(
          fmt::format("squeeze: dimension {} of {} has size {}. Only dimensions of size 1 can go. Use "
                      "reshape or an index.",
                      d, to_string(shape), shape[d]));
    if (!named && (!axes.all || shape[d] != 1)) result.push_back(shape[d]);
  }
  return prim::reshape(x, result);
}
Array broadcast_to_fn::operator()(const Array& x, const Shape& shape, Where w) const {
  const Site site(w, "broadcast_to");
  const Shape shapes[] = {type_of(x, "broadcast_to").shape, shape};
  if (!(api::common_shape("broadcast_to", shapes) == shape))
    throw ShapeError(
        fmt::format("broadcast_to: {} does not fit into {}. Aligned at the last dimension, sizes must be "
                    "equal, or 1 in the "
                    "operand. Give a larger shape.",
                    to_string(x.shape()), to_string(shape)));
  return prim::broadcast_to(x, shape);
}
Array flip_fn::operator()(const Array& x, const AxisSet& axes, Where w) const {
  const Site site(w, "flip");
  const Shape& shape = type_of(x, "flip").shape;
  Shape dims = axes.all ? identity_permutation(shape.size()) : api::axes_of("flip", axes.axes, shape);
  for (std::int64_t& d : dims) d -= signed_size(shape);
  return prim::reverse(x, dims);
}
Array roll_fn::operator()(const Array& x, std::int64_t shift, std::optional<std::int64_t> axis,
                          Where w) const {
  const Site site(w);
  const Shape& shape = type_of(x, "roll").shape;
  if (axis) return (*this)(x, Shape{shift}, Shape{*axis});
  return prim::reshape((*this)(prim::reshape(x, {x.size()}), Shape{shift}, Shape{0}), shape);
}
Array roll_fn::operator()(const Array& x, const Shape& shifts, const Shape& axes, Where w) const {
  const Site site(w);
  const Shape& shape = type_of(x, "roll").shape;
  if (shifts.size() != axes.size())
    throw ShapeError(
        fmt::format("roll: shifts {} for axes {}. Every axis has one shift. Give as many shifts as axes.",
                    to_string(shifts), to_string(axes)));
  Shape by = Shape::filled(shape.size(), 0);
  for (std::size_t k = 0; k < axes.size(); k++) {
    const std::size_t dim = api::axis_of("roll", axes[k], shape);
    const std::int64_t n = std::max<std::int64_t>(shape[dim], 1);
    by[dim] = (by[dim] + (shifts[k] % n + n) % n) % n;
  }
  return prim::roll(x, by);
}
Array pad_fn::operator()(const Array& x, const std::vector<std::pair<std::int64_t, std::int64_t>>& widths,
                         const Array& value, Where w) const {
  const Site site(w, "pad");
  const Type& t = type_of(x, "pad");
  if (widths.size() != t.shape.size())
    throw ShapeError(
        fmt::format("pad: {} pairs of widths for shape {}. Every dimension needs one pair. Use {{0, 0}} for "
                    "dimensions that "
                    "stay.",
                    widths.size(), to_string(t.shape)));
  Shape lo, hi;
  for (auto [before, after] : widths) {
    if (before < 0 || after < 0)
      throw ShapeError(fmt::format(
          "pad: widths {} and {}. They are not negative. Use a slice to remove elements.", before, after));
    lo.push_back(before);
    hi.push_back(after);
  }
  const Array number = api::cast(value, {t.dtype, t.weak});
  if (number.node()->op != &op_constant)
    throw Error(fmt::format(
        "pad: the value {} is computed. It must be a number. Pad with 0 and put it there with where.",
        to_string(type_of(value))));
  return prim::pad(x, lo, hi, number.node()->attrs().bits);
}

// ---------------------------------------------------------------- several arrays
static WeakType type_of_all(const char* function, const std::vector<Array>& parts) {
  if (parts.empty())
    throw ShapeError(
        fmt::format("{}: no arrays. There must be at least one. Use zeros for an empty array.", function));
  WeakType t = api::weak_type_of(parts[0], function);
  for (const Array& p : parts) t = promote_types(t, api::weak_type_of(p, function));
  return t;
}
Array concatenate_fn::operator()(const std::vector<Array>& parts, std::int64_t axis, Where w) const {
  const Site site(w, "concatenate");
  const WeakType t = type_of_all("concatenate", parts);
  const std::size_t dim = api::axis_of("concatenate", axis, parts[0].shape());
  Arrays same;
  for (const Array& p : parts) {
    Shape expected = parts[0].shape();
    if (p.shape().size() == expected.size()) expected[dim] = p.shape()[dim];
    if (!(p.shape() == expected))
      throw ShapeError(
          fmt::format("concatenate: shapes {} and {} along axis {}. The other sizes must agree. Reshape or "
                      "slice an operand.",
                      to_string(parts[0].shape()), to_string(p.shape()), axis));
    same.push_back(api::cast(p, t));
  }
  return prim::concatenate(same, dim);
}
Array stack_fn::operator()(const std::vector<Array>& parts, std::int64_t axis, Where w) const {
  const Site site(w, "stack");
  type_of_all("stack", parts);
  Shape stacked = parts[0].shape();
  stacked.insert(0, static_cast<std::int64_t>(parts.size()));
  api::axis_of("stack", axis, stacked);
  std::vector<Array> expanded;
  for (const Array& p : parts) {
    if (!(p.shape() == parts[0].shape()))
      throw ShapeError(
          fmt::format("stack: shapes {} and {}. All must be equal. Broadcast or slice an operand.",
                      to_string(parts[0].shape()), to_string(p.shape())));
    expanded.push_back(expand_dims(p, axis));
  }
  return concatenate(expanded, axis);
}
std::vector<Array> split_fn::operator()(const Array& x, std::int64_t n, std::int64_t axis, Where w) const {
  const Site site(w, "split");
  const std::size_t dim = api::axis_of("split", axis, type_of(x, "split").shape);
  const std::int64_t size = x.shape()[dim];
  if (n < 1 || size % n != 0)
    throw ShapeError(fmt::format(
        "split: {} elements into {} pieces. The pieces must be equal. Give the positions where pieces begin.",
        size, n));
  constexpr std::int64_t most = std::int64_t{1} << 20;
  if (n > most)
    throw ShapeError(fmt::format(
        "split: {} pieces. There are at most {}: each is an array. Reshape, and map over the rows with vmap.",
        n, most));
  std::vector<Array> parts;
  for (std::int64_t k = 0; k < n; k++)
    parts.push_back(prim::slice_dim(x, dim, k * (size / n), (k + 1) * (size / n)));
  return parts;
}
std::vector<Array> split_fn::operator()(const Array& x, const Shape& positions, std::int64_t axis,
                                        Where w) const {
  const Site site(w, "split");
  const std::size_t dim = api::axis_of("split", axis, type_of(x, "split").shape);
  const std::int64_t size = x.shape()[dim];
  std::vector<Array> parts;
  std::int64_t begin = 0;
  auto cut = [&](std::int64_t end) {
    if (end < begin || end > size)
      throw ShapeError(
          fmt::format("split: positions {} for {} elements. They must rise and lie inside. Sort them.",
                      to_string(positions), size));
    parts.push_back(prim::slice_dim(x, dim, begin, end));
    begin = end;
  };
  for (std::int64_t p : positions) cut(p);
  cut(size);
  return parts;
}

// ---------------------------------------------------------------- triangles
// Keeps elements with column - row <= k (lower) or >= k.
static Array triangle(const char* function, const Array& x, std::int64_t k, const Op& kept) {
  const Shape& shape = type_of(x, function).shape;
  if (shape.size() < 2)
    throw ShapeError(fmt::format("{}: shape {}. A matrix has two dimensions at least. Reshape first.",
                                 function, to_string(shape)));
  const Shape matrix{shape[shape.size() - 2], shape.back()};
  const DType t = api::position_type(matrix);
  const Array distance = prim::sub(prim::iota(matrix, 1, t), prim::iota(matrix, 0, t));
  const std::int64_t diagonal = std::clamp(k, -matrix[0], matrix[1]);  // beyond, all or nothing is kept
  const Array keep = prim::binary(kept, distance, prim::like_whole(distance, diagonal));
  return prim::select(prim::broadcast_to(keep, shape), x, zeros_of(type_of(x)));
}
Array tril_fn::operator()(const Array& x, std::int64_t k, Where w) const {
  const Site site(w, "tril");
  return triangle("tril", x, k, op_le);
}
Array triu_fn::operator()(const Array& x, std::int64_t k, Where w) const {
  const Site site(w, "triu");
  return triangle("triu", x, k, op_ge);
}

}  // namespace shardarray
