// slice, flip, pad, split: dimensions whose extent or order changes. If such a dimension is sharded, boxes are exchanged between
// neighbours: a halo factor, shared by both sides although their sizes differ.
#include <fmt/core.h>

#include "base/ceil_div.h"
#include "base/count_text.h"
#include "base/sizes.h"
#include "graph/trace_state.h"
#include "ops/api.h"
#include "ops/boxes.h"
#include "ops/complex.h"
#include "ops/rules.h"
#include "shardarray/ops.h"

namespace shardarray {

using namespace rules;

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
  std::vector<DimFactors> dims;
  for (std::size_t d = 0; d < c.in[0].shape.size(); d++)
    dims.push_back(add_factor(r, c.in[0].shape[d], kept(c, d) ? Role::pass : Role::halo));
  r.operands = r.results = {dims};
  return r;
}

// attrs.lo, hi, step >= 1, one per dimension.
SHARDARRAY_OP op_slice{.name = "slice",
                       .form = Form::map,
                       .rule = slice_rule,
                       .type = slice_type,
                       .linearity = joint,
                       .transpose =
                           [](const TransposeArgs& t) {
                             const Attrs& a = t.node.attrs();
                             return Arrays{primitive::embed(t.cotangents[0], a.lo, a.step, t.in[0].shape())};
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

std::vector<Array> split_fn::pieces(const Array& x, std::int64_t n, std::int64_t axis, Where w) const {
  const Site site(w, "split");
  const std::size_t dim = api::axis_of("split", axis, type_of(x, "split").shape);
  const std::int64_t size = x.shape()[dim];
  if (n < 1 || size % n != 0)
    throw ShapeError(
        fmt::format("split: {} into {}. The pieces must be equal. Give the positions where pieces begin.",
                    count_text(size, "element"), count_text(n, "piece")));
  constexpr std::int64_t most = std::int64_t{1} << 20;
  if (n > most)
    throw ShapeError(fmt::format(
        "split: {} pieces. There are at most {}: each is an array. Reshape, and map over the rows with vmap.",
        n, most));
  std::vector<Array> parts;
  for (std::int64_t k = 0; k < n; k++)
    parts.push_back(primitive::slice_dim(x, dim, k * (size / n), (k + 1) * (size / n)));
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
      throw ShapeError(fmt::format("split: positions {} for {}. They must rise and lie inside. Sort them.",
                                   to_string(positions), count_text(size, "element")));
    parts.push_back(primitive::slice_dim(x, dim, begin, end));
    begin = end;
  };
  for (std::int64_t p : positions) cut(p);
  cut(size);
  return parts;
}

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

// attrs.dims.
SHARDARRAY_OP op_reverse{.name = "reverse",
                         .form = Form::map,
                         .rule = reverse_rule,
                         .linearity = joint,
                         .transpose =
                             [](const TransposeArgs& t) {
                               return Arrays{primitive::reverse(t.cotangents[0], t.node.attrs().dims)};
                             },
                         .map =
                             [](const Call& c) {
                               std::vector<MapDim> m;
                               for (std::size_t d = 0; d < c.in[0].shape.size(); d++)
                                 m.push_back(reversed(c, d)
                                                 ? MapDim{static_cast<int>(d), -1, c.in[0].shape[d] - 1}
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

Array flip_fn::operator()(const Array& x, const AxisSet& axes, Where w) const {
  const Site site(w, "flip");
  const Shape& shape = type_of(x, "flip").shape;
  Shape dims = axes.all ? dims_of_rank(shape.size()) : api::axes_of("flip", axes.axes, shape);
  for (std::int64_t& d : dims) d -= static_cast<std::int64_t>(shape.size());
  return primitive::reverse(x, dims);
}

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

// attrs.lo, hi: the number of elements added before and after, per dimension; bits: their value.
SHARDARRAY_OP op_pad{
    .name = "pad",
    .form = Form::boxes,
    .rule = pad_rule,
    .type = pad_type,
    .linearity = [](const Call& c, int) { return c.attrs->bits == 0 ? Linear::joint : Linear::no; },
    .jvp =
        [](const JvpArgs& v) {
          return Arrays{primitive::pad(v.tangents[0], v.node.attrs().lo, v.node.attrs().hi)};
        },
    .transpose =
        [](const TransposeArgs& t) {
          const Shape &lo = t.node.attrs().lo, &shape = t.in[0].shape();
          Shape end = lo;
          for (std::size_t d = 0; d < lo.size(); d++) end[d] += shape[d];
          return Arrays{primitive::slice(t.cotangents[0], lo, end)};
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

// The widths before and after each dimension.
static std::pair<Shape, Shape> pad_widths(const Array& x,
                                          const std::vector<std::pair<std::int64_t, std::int64_t>>& widths) {
  const Type& t = type_of(x, "pad");
  if (widths.size() != t.shape.size())
    throw ShapeError(
        fmt::format("pad: {} of widths for shape {}. Every dimension needs one pair. Use {{0, 0}} for "
                    "dimensions that stay.",
                    count_text(widths.size(), "pair"), to_string(t.shape)));
  Shape lo, hi;
  for (auto [before, after] : widths) {
    if (before < 0 || after < 0)
      throw ShapeError(fmt::format(
          "pad: widths {} and {}. They are not negative. Use a slice to remove elements.", before, after));
    lo.push_back(before);
    hi.push_back(after);
  }
  return {lo, hi};
}
Array pad_fn::operator()(const Array& x, const std::vector<std::pair<std::int64_t, std::int64_t>>& widths,
                         const Array& value, Where w) const {
  const Site site(w, "pad");
  const auto [lo, hi] = pad_widths(x, widths);
  const Type& t = type_of(x);
  const Array number = api::cast(value, {t.dtype, t.weak});
  const auto padded = [&lo = lo, &hi = hi](const Array& y, const Array& v) {
    return primitive::pad(y, lo, hi, v.node()->attrs().bits);
  };
  if (is_complex(t.dtype) && !is_literal(*number.node())) {
    const Complex v(number);
    if (is_literal(*v.re.node()) && is_literal(*v.im.node()))
      return primitive::pair(padded(primitive::real(x), v.re), padded(primitive::imag(x), v.im));
  }
  if (!is_literal(*number.node()))
    throw Error(fmt::format(
        "pad: the value {} is computed. It must be a number. Pad with 0 and put it there with where.",
        to_string(type_of(value))));
  return padded(x, number);
}

// Elements start .. start + count of an infinitely repeated dimension.
static Array part_of_periods(const Array& period, std::size_t dim, std::int64_t start, std::int64_t count) {
  Shape apart = period.shape(), merged = apart;
  const std::int64_t copies = (start + count - 1) / apart[dim] + 1;
  apart.insert(dim, 1);
  Shape wide = apart;
  wide[dim] = copies;
  merged[dim] = mul_sizes(copies, merged[dim]);
  const Array all_copies =
      primitive::reshape(primitive::broadcast_to(primitive::reshape(period, apart), wide), merged);
  return primitive::slice_dim(all_copies, dim, start, start + count);
}
// Pads a dimension of several elements. Element i of the result is element i - lo of the infinite continuation: x repeated, or x
// alternating with its mirror image. A few periods are concatenated from pieces; only what is sliced off moves.
static Array pad_periods(const Array& x, std::size_t dim, std::int64_t lo, std::int64_t hi, PadMode mode) {
  constexpr std::int64_t few = 16;
  const std::int64_t n = x.shape()[dim],
                     ends = mode == PadMode::reflect ? 1 : 0;  // mirrored without its ends
  const std::int64_t period = mode == PadMode::wrap ? n : 2 * (n - ends);
  // elements first .. first - count + 1, in reverse
  const auto falling = [&](std::int64_t first, std::int64_t count) {
    return primitive::reverse(primitive::slice_dim(x, dim, first - count + 1, first + 1),
                              {from_last(dim, x.shape().size())});
  };
  const std::int64_t start = (period - lo % period) % period;
  if ((lo + hi) / period > few) {
    const Array turns[] = {x, period > n ? falling(n - 1 - ends, period - n) : x};
    return part_of_periods(primitive::concatenate({turns, period > n ? 2U : 1U}, dim), dim, start,
                           n + lo + hi);
  }
  std::vector<Array> runs;
  for (std::int64_t i = start, next; i < start + n + lo + hi; i = next) {
    const std::int64_t at = i % period;
    next = std::min(start + n + lo + hi, i + (at < n ? n : period) - at);
    runs.push_back(at < n ? primitive::slice_dim(x, dim, at, at + next - i)
                          : falling(period - at - 1 + ends, next - i));
  }
  return primitive::concatenate(runs, dim);
}
static Array pad_edges(const Array& x, std::size_t dim, std::int64_t lo, std::int64_t hi) {
  const auto edge = [&](std::int64_t k, std::int64_t count) {
    Shape shape = x.shape();
    shape[dim] = count;
    return primitive::broadcast_to(primitive::slice_dim(x, dim, k, k + 1), shape);
  };
  const Array parts[] = {edge(0, lo), x, edge(x.shape()[dim] - 1, hi)};
  return primitive::concatenate(parts, dim);
}
Array pad_fn::operator()(const Array& x, const std::vector<std::pair<std::int64_t, std::int64_t>>& widths,
                         PadMode mode, Where w) const {
  const Site site(w, "pad");
  const auto [lo, hi] = pad_widths(x, widths);
  Type grown = type_of(x);
  for (std::size_t d = 0; d < lo.size(); d++)
    grown.shape[d] = add_sizes(grown.shape[d], add_sizes(lo[d], hi[d]));
  check_type(grown, "pad");
  Array y = x;
  for (std::size_t d = 0; d < lo.size(); d++) {
    if (lo[d] == 0 && hi[d] == 0) continue;
    if (y.shape()[d] == 0)
      throw ShapeError(fmt::format(
          "pad: {} has no elements along axis {}. What is put there is one of them. Pad with a number.",
          to_string(type_of(x)), d));
    y = mode == PadMode::edge || y.shape()[d] == 1 ? pad_edges(y, d, lo[d], hi[d])
                                                   : pad_periods(y, d, lo[d], hi[d], mode);
  }
  return y;
}

}  // namespace shardarray
