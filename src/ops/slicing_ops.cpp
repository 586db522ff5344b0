// slice, reverse, pad, concatenate, roll: dimensions that change their extent or order. Where such a dimension is cut into tiles,
// boxes move between neighbours: a halo factor, shared by both sides although their sizes differ.
#include <fmt/core.h>

#include "base/ceil_div.h"
#include "base/sizes.h"
#include "ops/rules.h"
#include "ops/table.h"

namespace shardarray {

using namespace rules;

// A box that is read where it stands.
static BoxSource copied(const Box& out) { return {0, out, out.lo, Shape::filled(out.lo.size(), 1)}; }

static Batched with_leading(const BatchArgs& b, Attrs a) {
  return mapped({record(*b.node.op, b.in, std::move(a))});
}

// ---------------------------------------------------------------- slice
static bool kept(const Call& c, std::size_t d) {
  return c.attrs->lo[d] == 0 && c.attrs->hi[d] == c.in[0].shape[d] && c.attrs->step[d] == 1;
}

static Types slice_type(const Call& c) {
  Type t = c.in[0];
  const Attrs& a = *c.attrs;
  for (std::size_t d = 0; d < t.shape.size(); d++) {
    if (a.lo.size() != t.shape.size() || a.lo[d] < 0 || a.lo[d] > a.hi[d] || a.hi[d] > t.shape[d] ||
        a.step[d] < 1)
      throw InternalError(
          fmt::format("slice: {} from {} to {} by {}. Bounds must lie inside, steps be positive.",
                      to_string(t), to_string(a.lo), to_string(a.hi), to_string(a.step)));
    t.shape[d] = ceil_div(a.hi[d] - a.lo[d], a.step[d]);
  }
  return {t};
}

static Rule slice_rule(const Call& c) {
  Rule r;
  std::vector<DimFactors> in, out;
  for (std::size_t d = 0; d < c.in[0].shape.size(); d++) {
    const std::int64_t size = c.in[0].shape[d], step = c.attrs->step[d];
    in.push_back(add_factor(r, size, kept(c, d) ? Role::pass : step == 1 ? Role::halo : Role::whole));
    out.push_back(step == 1 ? in.back()
                            : add_factor(r, ceil_div(c.attrs->hi[d] - c.attrs->lo[d], step), Role::whole));
  }
  r.operands = {in};
  r.results = {out};
  return r;
}

constinit const Op op_slice{.name = "slice",
                            .form = Form::map,
                            .rule = slice_rule,
                            .type = slice_type,
                            .linearity = joint,
                            .transpose =
                                [](const TransposeArgs& t) {
                                  const Attrs& a = t.node.attrs();
                                  return Arrays{prim::embed(t.cotangents[0], a.lo, a.step, t.in[0].shape())};
                                },
                            .batch =
                                [](const BatchArgs& b) {
                                  Attrs a = b.node.attrs();
                                  a.lo = prepend(0, a.lo);
                                  a.hi = prepend(b.axis->size, a.hi);
                                  a.step = prepend(1, a.step);
                                  return with_leading(b, std::move(a));
                                },
                            .map =
                                [](const Call& c) {
                                  std::vector<MapDim> m;
                                  for (std::size_t d = 0; d < c.attrs->lo.size(); d++)
                                    m.push_back({static_cast<int>(d), c.attrs->step[d], c.attrs->lo[d]});
                                  return m;
                                },
                            .boxes =
                                [](const Call& c, const Box& out) {
                                  BoxSource s = copied(out);
                                  for (std::size_t d = 0; d < s.in_lo.size(); d++) {
                                    s.step[d] = c.attrs->step[d];
                                    s.in_lo[d] = c.attrs->lo[d] + s.step[d] * out.lo[d];
                                  }
                                  return std::vector<BoxSource>{s};
                                }};

// ---------------------------------------------------------------- reverse
static bool reversed(const Call& c, std::size_t d) {
  const Shape& dims = c.attrs->dims;
  return std::find(dims.begin(), dims.end(), from_last(d, c.in[0].shape.size())) != dims.end();
}

static Rule reverse_rule(const Call& c) {
  Rule r = pointwise_rule(c);
  for (std::size_t d = 0; d < c.in[0].shape.size(); d++)
    if (reversed(c, d)) r.factors[d].role = Role::halo;
  return r;
}

constinit const Op op_reverse{
    .name = "reverse",
    .form = Form::map,
    .rule = reverse_rule,
    .linearity = joint,
    .transpose =
        [](const TransposeArgs& t) { return Arrays{prim::reverse(t.cotangents[0], t.node.attrs().dims)}; },
    .map =
        [](const Call& c) {
          std::vector<MapDim> m;
          for (std::size_t d = 0; d < c.in[0].shape.size(); d++)
            m.push_back(reversed(c, d) ? MapDim{static_cast<int>(d), -1, c.in[0].shape[d] - 1}
                                       : MapDim{static_cast<int>(d), 1, 0});
          return m;
        },
    .boxes =
        [](const Call& c, const Box& out) {
          BoxSource s = copied(out);
          for (std::size_t d = 0; d < s.in_lo.size(); d++)
            if (reversed(c, d)) {
              s.step[d] = -1;
              s.in_lo[d] = c.in[0].shape[d] - 1 - out.lo[d];
            }
          return std::vector<BoxSource>{s};
        }};

// ---------------------------------------------------------------- pad
static Types pad_type(const Call& c) {
  Type t = c.in[0];
  const Attrs& a = *c.attrs;
  for (std::size_t d = 0; d < t.shape.size(); d++) {
    if (a.lo.size() != t.shape.size() || a.lo[d] < 0 || a.hi[d] < 0)
      throw InternalError(fmt::format("pad: {} by {} and {}. Two non-negative widths per dimension.",
                                      to_string(t), to_string(a.lo), to_string(a.hi)));
    t.shape[d] = add_sizes(t.shape[d], add_sizes(a.lo[d], a.hi[d]));
  }
  return {t};
}

static Rule pad_rule(const Call& c) {
  Rule r;
  std::vector<DimFactors> dims;
  for (std::size_t d = 0; d < c.in[0].shape.size(); d++) {
    const std::int64_t added = c.attrs->lo[d] + c.attrs->hi[d];
    dims.push_back(add_factor(r, c.in[0].shape[d] + added, added ? Role::halo : Role::pass));
  }
  r.operands = r.results = {dims};
  return r;
}

constinit const Op op_pad{
    .name = "pad",
    .form = Form::boxes,
    .rule = pad_rule,
    .type = pad_type,
    .linearity = [](const Call& c, int) { return c.attrs->bits == 0 ? Linear::joint : Linear::no; },
    .jvp =
        [](const JvpArgs& v) {
          return Arrays{prim::pad(v.tangents[0], v.node.attrs().lo, v.node.attrs().hi)};
        },
    .transpose =
        [](const TransposeArgs& t) {
          const Shape &lo = t.node.attrs().lo, &shape = t.in[0].shape();
          Shape end = lo;
          for (std::size_t d = 0; d < lo.size(); d++) end[d] += shape[d];
          return Arrays{prim::slice(t.cotangents[0], lo, end)};
        },
    .batch =
        [](const BatchArgs& b) {
          Attrs a = b.node.attrs();
          a.lo = prepend(0, a.lo);
          a.hi = prepend(0, a.hi);
          return with_leading(b, std::move(a));
        },
    .boxes =
        [](const Call& c, const Box& out) {
          Box inner{c.attrs->lo, c.in[0].shape};
          BoxSource s = copied(intersect(out, inner));
          for (std::size_t d = 0; d < s.in_lo.size(); d++) s.in_lo[d] -= c.attrs->lo[d];
          return s.out.empty() ? std::vector<BoxSource>() : std::vector<BoxSource>{s};
        }};

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

constinit const Op op_concatenate{
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
            parts.push_back(t.linear[k] ? prim::slice_dim(t.cotangents[0], dim, begin, end) : Array());
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

// ---------------------------------------------------------------- roll
static Rule roll_rule(const Call& c) {
  Rule r = pointwise_rule(c);
  for (std::size_t d = 0; d < c.attrs->lo.size(); d++)
    if (c.attrs->lo[d] != 0) r.factors[d].role = Role::halo;
  return r;
}

// In every dimension what comes in again lies before what was shifted: 2^n corners at most.
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

constinit const Op op_roll{.name = "roll",
                           .form = Form::boxes,
                           .rule = roll_rule,
                           .linearity = joint,
                           .transpose =
                               [](const TransposeArgs& t) {
                                 Shape back = t.node.attrs().lo;
                                 for (std::size_t d = 0; d < back.size(); d++)
                                   if (back[d] != 0) back[d] = t.in[0].shape()[d] - back[d];
                                 return Arrays{prim::roll(t.cotangents[0], back)};
                               },
                           .batch =
                               [](const BatchArgs& b) {
                                 Attrs a = b.node.attrs();
                                 a.lo = prepend(0, a.lo);
                                 return with_leading(b, std::move(a));
                               },
                           .boxes = roll_boxes};

// ---------------------------------------------------------------- permute_rows
static Rule permute_rows_rule(const Call& c) {
  Rule r = pointwise_rule(c);
  r.factors[from_first(c.attrs->dims[0], c.in[0].shape.size())].role = Role::halo;
  return r;
}

// Neighbouring rows that come from neighbouring rows are one box.
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

constinit const Op op_permute_rows{
    .name = "permute_rows",
    .form = Form::boxes,
    .rule = permute_rows_rule,
    .linearity = joint,
    .transpose =
        [](const TransposeArgs& t) {
          Attrs a = t.node.attrs();
          const Shape& source = t.node.attrs().lo;
          a.lo = Shape::filled(source.size(), -1);
          for (std::size_t k = 0; k < source.size(); k++)
            if (source[k] >= 0) a.lo[static_cast<std::size_t>(source[k])] = static_cast<std::int64_t>(k);
          return Arrays{record(op_permute_rows, {t.cotangents[0]}, std::move(a))};
        },
    .boxes = permute_rows_boxes};

static constexpr const Op* slicing_table[] = {&op_slice,       &op_reverse, &op_pad,
                                              &op_concatenate, &op_roll,    &op_permute_rows};
constinit const std::span<const Op* const> slicing_ops = slicing_table;

}  // namespace shardarray
