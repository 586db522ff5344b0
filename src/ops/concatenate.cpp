// concatenate, stack, roll, permute_rows: dimensions assembled from parts of others. If such a dimension is sharded, boxes are exchanged
// between neighbours: a halo factor, shared by both sides although their sizes differ.
#include <fmt/core.h>

#include "base/sizes.h"
#include "graph/trace_state.h"
#include "ops/api.h"
#include "ops/boxes.h"
#include "ops/rules.h"
#include "shardarray/ops.h"

namespace shardarray {

using namespace rules;

// ---------------------------------------------------------------- concatenate
static std::size_t concat_dim(const Call& c) { return from_first(c.attrs->dims[0], c.in[0].shape.size()); }

static Types concatenate_type(const Call& c) {
  Type t = c.in[0];
  const std::size_t dim = concat_dim(c);
  t.shape[dim] = 0;
  for (const Type& o : c.in) {
    Shape other = o.shape;
    if (other.size() == t.shape.size()) other[dim] = t.shape[dim];
    if (!(other == t.shape) || o.dtype != t.dtype)
      throw InternalError(fmt::format("concatenate: operands {} and {}. They must agree but in dimension {}.",
                                      to_string(c.in[0]), to_string(o), dim));
    t.shape[dim] = add_sizes(t.shape[dim], o.shape[dim]);
    t.weak = t.weak && o.weak;
  }
  return {t};
}

static Rule concatenate_rule(const Call& c) {
  Rule r;
  std::vector<DimFactors> dims;
  const Shape shape = concatenate_type(c)[0].shape;
  for (std::size_t d = 0; d < shape.size(); d++)
    dims.push_back(add_factor(r, shape[d], d == concat_dim(c) ? Role::halo : Role::pass));
  r.operands.assign(c.in.size(), dims);
  r.results = {dims};
  return r;
}

// attrs.dims[0].
SHARDARRAY_OP op_concatenate{
    .name = "concatenate",
    .form = Form::boxes,
    .rule = concatenate_rule,
    .type = concatenate_type,
    .linearity = joint,
    .jvp =
        [](const JvpArgs& v) {
          Arrays parts;
          for (std::size_t k = 0; k < v.in.size(); k++)
            parts.push_back(v.tangents[k].has_value() ? v.tangents[k] : zeros_of(type_of(v.in[k])));
          return Arrays{record(op_concatenate, parts, v.node.attrs())};
        },
    .transpose =
        [](const TransposeArgs& t) {
          const std::size_t dim = from_first(t.node.attrs().dims[0], t.in[0].shape().size());
          Arrays parts;
          std::int64_t begin = 0;
          for (std::size_t k = 0; k < t.in.size(); k++) {
            const std::int64_t end = begin + t.in[k].shape()[dim];
            parts.push_back(t.linear[k] ? primitive::slice_dim(t.cotangents[0], dim, begin, end) : Array());
            begin = end;
          }
          return parts;
        },
    .boxes =
        [](const Call& c, const Box& out) {
          const std::size_t dim = concat_dim(c);
          std::vector<BoxSource> sources;
          Shape begin = Shape::filled(c.in[0].shape.size(), 0);
          for (std::size_t k = 0; k < c.in.size(); k++) {
            BoxSource s = copied(intersect(out, {begin, c.in[k].shape}));
            s.operand = static_cast<int>(k);
            s.in_lo[dim] -= begin[dim];
            if (!s.out.empty()) sources.push_back(s);
            begin[dim] += c.in[k].shape[dim];
          }
          return sources;
        }};

static WeakType type_of_all(const char* function, const std::vector<Array>& parts) {
  if (parts.empty())
    throw ShapeError(fmt::format("{}: no arrays. There must be at least one. Use zeros for an empty array.",
                                 current_function(function)));
  return api::promoted_all(function, parts);
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
      throw ShapeError(fmt::format(
          "{}: shapes {} and {} along axis {}. The other sizes must agree. Reshape or "
          "slice an operand.",
          current_function("concatenate"), to_string(parts[0].shape()), to_string(p.shape()), axis));
    same.push_back(api::cast(p, t));
  }
  return primitive::concatenate(same, dim);
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

// ---------------------------------------------------------------- roll
static Rule roll_rule(const Call& c) {
  Rule r = pointwise_rule(c);
  for (std::size_t d = 0; d < c.attrs->lo.size(); d++)
    if (c.attrs->lo[d] != 0) r.factors[d].role = Role::halo;
  return r;
}

// In each dimension the part that wraps around precedes the shifted part: at most 2^n corners.
static std::vector<BoxSource> roll_boxes(const Call& c, const Box& out) {
  std::vector<BoxSource> corners{copied(out)};
  for (std::size_t d = 0; d < out.lo.size(); d++) {
    const std::int64_t shift = c.attrs->lo[d], size = c.in[0].shape[d];
    if (shift == 0) continue;
    std::vector<BoxSource> cut;
    for (const BoxSource& s : corners)
      for (const bool again : {true, false}) {
        Box side = whole_box(c.in[0].shape);
        side.lo[d] = again ? 0 : shift;
        side.size[d] = again ? shift : size - shift;
        BoxSource part = s;
        part.out = intersect(s.out, side);
        part.in_lo[d] = part.out.lo[d] - shift + (again ? size : 0);
        if (!part.out.empty()) cut.push_back(part);
      }
    corners = std::move(cut);
  }
  return corners;
}

// attrs.lo: the shift of each dimension, from 0 to its size - 1.
SHARDARRAY_OP op_roll{.name = "roll",
                      .form = Form::boxes,
                      .rule = roll_rule,
                      .linearity = joint,
                      .transpose =
                          [](const TransposeArgs& t) {
                            Shape back = t.node.attrs().lo;
                            for (std::size_t d = 0; d < back.size(); d++)
                              if (back[d] != 0) back[d] = t.in[0].shape()[d] - back[d];
                            return Arrays{primitive::roll(t.cotangents[0], back)};
                          },
                      .batch =
                          [](const BatchArgs& b) {
                            Attrs a = b.node.attrs();
                            a.lo = prepend(0, a.lo);
                            return with_leading(b, std::move(a));
                          },
                      .boxes = roll_boxes};

Array roll_fn::operator()(const Array& x, std::int64_t shift, std::optional<std::int64_t> axis,
                          Where w) const {
  const Site site(w, "roll");
  const Shape& shape = type_of(x, "roll").shape;
  if (axis) return (*this)(x, Shape{shift}, Shape{*axis});
  return primitive::reshape((*this)(primitive::reshape(x, {x.size()}), Shape{shift}, Shape{0}), shape);
}
Array roll_fn::operator()(const Array& x, const Shape& shifts, const Shape& axes, Where w) const {
  const Site site(w, "roll");
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
  return primitive::roll(x, by);
}

Array roll_fn::by_value(const Array& x, const Array& shift, std::optional<std::int64_t> axis, Where w) const {
  const Site site(w, "roll");
  const Shape& shape = type_of(x, "roll").shape;
  const Type& t = type_of(shift, "roll");
  if (!is_integer(t.dtype))
    throw DTypeError(fmt::format(
        "roll: the shift is {}. It is a whole number. Convert it with astype(int32).", to_string(t)));
  if (!t.shape.empty())
    throw ShapeError(fmt::format(
        "roll: the shift is {}. It is one number for all: a scalar. Roll once for each axis.", to_string(t)));
  if (!axis) return primitive::reshape(by_value(primitive::reshape(x, {x.size()}), shift, 0, w), shape);
  const std::size_t dim = api::axis_of("roll", *axis, shape);
  if (shape[dim] == 0) return x;
  const Array n = primitive::like_whole(primitive::full({}, DType::int64, 0), shape[dim]);
  const Array by = remainder(primitive::cast(shift, DType::int64), n);
  const Array at = primitive::iota({shape[dim]}, 0, DType::int64);
  const Array rows = remainder(primitive::sub(at, primitive::broadcast_to(by, {shape[dim]})), n);
  return take(x, primitive::cast(rows, api::position_type(shape)), *axis);
}

// ---------------------------------------------------------------- permute_rows
static Rule permute_rows_rule(const Call& c) {
  Rule r = pointwise_rule(c);
  r.factors[from_first(c.attrs->dims[0], c.in[0].shape.size())].role = Role::halo;
  return r;
}

// Consecutive rows taken from consecutive rows form one box.
static std::vector<BoxSource> permute_rows_boxes(const Call& c, const Box& out) {
  const std::size_t dim = from_first(c.attrs->dims[0], c.in[0].shape.size());
  const Shape& source = c.attrs->lo;
  std::vector<BoxSource> boxes;
  const std::int64_t stop = out.lo[dim] + out.size[dim];
  for (std::int64_t row = out.lo[dim], end; row < stop; row = end) {
    const std::int64_t first = source[static_cast<std::size_t>(row)];
    for (end = row + 1;
         end < stop && first >= 0 && source[static_cast<std::size_t>(end)] == first + end - row;)
      end++;
    if (first < 0) continue;
    BoxSource s = copied(out);
    s.out.lo[dim] = row;
    s.out.size[dim] = end - row;
    s.in_lo[dim] = first;
    boxes.push_back(std::move(s));
  }
  return boxes;
}

// Row k of dimension attrs.dims[0] is the operand's row attrs.lo[k]; -1: zeros; no row twice.
SHARDARRAY_OP op_permute_rows{.name = "permute_rows",
                              .form = Form::boxes,
                              .rule = permute_rows_rule,
                              .linearity = joint,
                              .transpose =
                                  [](const TransposeArgs& t) {
                                    Attrs a = t.node.attrs();
                                    const Shape& source = t.node.attrs().lo;
                                    a.lo = Shape::filled(source.size(), -1);
                                    for (std::size_t k = 0; k < source.size(); k++)
                                      if (source[k] >= 0)
                                        a.lo[static_cast<std::size_t>(source[k])] =
                                            static_cast<std::int64_t>(k);
                                    return Arrays{record(op_permute_rows, {t.cotangents[0]}, std::move(a))};
                                  },
                              .boxes = permute_rows_boxes,
                              .trait = Trait::row_list};

}  // namespace shardarray
