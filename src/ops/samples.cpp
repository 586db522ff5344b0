// Functions of samples along a line: differences, slopes, integrals, interpolation, polynomials, convolutions.
#include <fmt/core.h>

#include <algorithm>

#include "base/count_text.h"
#include "base/sizes.h"
#include "graph/trace_state.h"
#include "ops/api.h"
#include "ops/complex.h"
#include "ops/row_index.h"
#include "shardarray/ordering.h"
#include "shardarray/products.h"

namespace shardarray {

// The promoted, floating operand in the dtype of the computation; `t`: the dtype of the result.
static Array wide_samples(const Array& x, WeakType& t) {
  t = api::to_inexact(t);
  return primitive::cast(api::cast(x, t), api::computed(t).dtype, t.weak);
}
static Array first_of(const Array& x, std::size_t dim) {
  return primitive::slice_dim(x, dim, 0, std::max<std::int64_t>(x.shape()[dim] - 1, 0));
}
static Array behind_first(const Array& x, std::size_t dim) {
  return primitive::slice_dim(x, dim, std::min<std::int64_t>(x.shape()[dim], 1), x.shape()[dim]);
}

// The concatenation with prepend and append; a scalar is one element per line.
static Array with_ends(const Array& x, const DiffOptions& o, std::size_t dim) {
  std::vector<Array> parts;
  const auto part = [&](const ArrayOption& end) {
    if (!end.array) return;
    Shape one = x.shape();
    one[dim] = 1;
    parts.push_back(type_of(*end.array, "diff").shape.empty() ? primitive::broadcast_to(*end.array, one)
                                                              : *end.array);
  };
  part(o.prepend);
  parts.push_back(x);
  part(o.append);
  return parts.size() == 1 ? x : concatenate(parts, static_cast<std::int64_t>(dim));
}
Array diff_fn::operator()(const Array& x, const DiffOptions& o, Where w) const {
  const Site site(w, "diff");
  const std::size_t dim = api::axis_of("diff", o.axis, type_of(x, "diff").shape);
  if (o.n < 0)
    throw ShapeError(fmt::format("diff: {} times. The number is not negative. Use cumsum for sums.", o.n));
  if (o.n == 0) return x;
  Array y = with_ends(x, o, dim);
  for (std::int64_t k = 0; k < o.n && y.shape()[dim] > 0; k++)
    y = primitive::binary(y.dtype() == DType::bool_ ? op_ne : op_sub, behind_first(y, dim), first_of(y, dim));
  return y;
}
Array ediff1d_fn::operator()(const Array& x, const Array& to_end, const Array& to_begin, Where w) const {
  const Site site(w, "ediff1d");
  const Type& t = type_of(x, "ediff1d");
  std::vector<Array> parts{diff(primitive::reshape(x, {x.size()}))};
  const auto beside = [&](const Array& values) {
    check_kind("ediff1d", t, type_of(values, "ediff1d"));
    return primitive::reshape(api::cast(values, {t.dtype, t.weak}), {values.size()});
  };
  if (to_end.has_value()) parts.push_back(beside(to_end));
  if (to_begin.has_value()) parts.insert(parts.begin(), beside(to_begin));
  return parts.size() == 1 ? parts[0] : primitive::concatenate(parts, 0);
}
Array unwrap_fn::operator()(const Array& x, const UnwrapOptions& o, Where w) const {
  const Site site(w, "unwrap");
  WeakType t = api::weak_type_of(x, "unwrap");
  const Array y = wide_samples(x, t);
  t.weak = false;  // as in JAX
  const std::size_t dim = api::axis_of("unwrap", o.axis, y.shape());
  if (!(o.period > 0))
    throw Error(fmt::format("unwrap: the period is {}. It is positive. Give another one.", o.period));
  if (y.shape()[dim] < 2) return primitive::cast(y, t.dtype, t.weak);
  const Array step = primitive::sub(behind_first(y, dim), first_of(y, dim));
  const auto number = [&](double v) { return primitive::like(step, v); };
  const Array half = number(o.period / 2);
  Array near = primitive::sub(remainder(primitive::add(step, half), number(o.period)), half);
  const Array is_up = primitive::binary(op_and, primitive::binary(op_eq, near, primitive::neg(half)),
                                        primitive::binary(op_gt, step, number(0)));
  near = primitive::select(is_up, half, near);
  const Array is_small =
      primitive::binary(op_lt, primitive::unary(op_abs, step), number(o.discont.value_or(o.period / 2)));
  const Array change = primitive::select(is_small, number(0), primitive::sub(near, step));
  const Array parts[] = {
      primitive::slice_dim(y, dim, 0, 1),
      primitive::add(behind_first(y, dim), cumsum(change, {.axis = static_cast<std::int64_t>(dim)}))};
  return primitive::cast(primitive::concatenate(parts, dim), t.dtype, t.weak);
}
static std::size_t sloped_axis(const Array& x, std::int64_t axis) {
  const std::size_t dim = api::axis_of("gradient", axis, x.shape());
  if (x.shape()[dim] < 2)
    throw ShapeError(
        fmt::format("gradient: {} along axis {}. A slope needs two samples. Check the size first.",
                    to_string(type_of(x)), axis));
  return dim;
}
// Half the difference of the two neighbours; at the ends the difference to the only one.
static Array half_differences(const Array& y, std::size_t dim) {
  const std::int64_t n = y.shape()[dim];
  const auto between = [&](std::int64_t low, std::int64_t high, std::int64_t count) {
    return primitive::sub(primitive::slice_dim(y, dim, high, high + count),
                          primitive::slice_dim(y, dim, low, low + count));
  };
  std::vector<Array> parts{between(0, 1, 1)};
  if (n > 2) {
    const Array inside = between(0, 2, n - 2);
    parts.push_back(primitive::mul(inside, primitive::like(inside, 0.5)));
  }
  parts.push_back(between(n - 2, n - 1, 1));
  return primitive::concatenate(parts, dim);
}
// The same for given places along the dimension: inside, weighted by the distances of the neighbours.
static Array slope_at(const Array& y, std::size_t dim, const Array& places) {
  const std::int64_t n = y.shape()[dim];
  Shape line = Shape::filled(y.shape().size(), 1);
  line[dim] = n;
  const Array at = primitive::broadcast_to(primitive::reshape(places, line), y.shape());
  const Array step = primitive::div(primitive::sub(behind_first(y, dim), first_of(y, dim)),
                                    primitive::sub(behind_first(at, dim), first_of(at, dim)));
  std::vector<Array> parts{primitive::slice_dim(step, dim, 0, 1)};
  if (n > 2) {
    const auto length = [&](std::int64_t from) {
      return primitive::sub(primitive::slice_dim(at, dim, from + 1, from + n - 1),
                            primitive::slice_dim(at, dim, from, from + n - 2));
    };
    const Array before = length(0), behind = length(1);
    const Array weighed = primitive::add(primitive::mul(behind, first_of(step, dim)),
                                         primitive::mul(before, behind_first(step, dim)));
    parts.push_back(primitive::div(weighed, primitive::add(before, behind)));
  }
  parts.push_back(primitive::slice_dim(step, dim, n - 2, n - 1));
  return primitive::concatenate(parts, dim);
}
Array gradient_fn::operator()(const Array& x, std::int64_t axis, double distance, Where w) const {
  const Site site(w, "gradient");
  WeakType t = api::weak_type_of(x, "gradient");
  const Array slope = half_differences(wide_samples(x, t), sloped_axis(x, axis));
  return primitive::cast(distance == 1 ? slope : primitive::div(slope, primitive::like(slope, distance)),
                         t.dtype, t.weak);
}
Array gradient_fn::operator()(const Array& x, std::int64_t axis, const Array& places, Where w) const {
  const Site site(w, "gradient");
  WeakType t = api::promoted("gradient", {&x, &places});
  const std::size_t dim = sloped_axis(x, axis);
  const Array y = wide_samples(x, t), at = wide_samples(places, t);
  if (at.shape().empty()) {
    const Array slope = half_differences(y, dim);
    return primitive::cast(primitive::div(slope, primitive::broadcast_to(at, slope.shape())), t.dtype,
                           t.weak);
  }
  if (!(at.shape() == Shape{y.shape()[dim]}))
    throw ShapeError(
        fmt::format("gradient: places {} of {} along axis {}. They are a vector that is as long. "
                    "Give one for each sample.",
                    to_string(type_of(places)), to_string(type_of(x)), axis));
  return primitive::cast(slope_at(y, dim, at), t.dtype, t.weak);
}
std::vector<Array> gradient_fn::operator()(const Array& x, const Shape& axes,
                                           const std::vector<Array>& distances, Where w) const {
  const Site site(w, "gradient");
  if (distances.size() > 1 && std::ssize(distances) != std::ssize(axes))
    throw ShapeError(fmt::format("gradient: {} for {}. There is one for each, or one for all. Give as many.",
                                 count_text(distances.size(), "distance"), count_text(axes.size(), "axis")));
  std::vector<Array> slopes;
  for (std::size_t k = 0; k < axes.size(); k++)
    slopes.push_back(distances.empty() ? gradient(x, axes[k])
                                       : gradient(x, axes[k], distances[distances.size() == 1 ? 0 : k]));
  return slopes;
}

// ---------------------------------------------------------------- trapezoid
// The sum of the means of neighbours times their distances.
static Array trapezoids(const Array& y, const Array& distance, std::size_t dim) {
  const Array pairs = primitive::mul(primitive::add(behind_first(y, dim), first_of(y, dim)), distance);
  const Array total = primitive::reduce(Reducer::sum, pairs, {static_cast<std::int64_t>(dim)});
  return primitive::mul(total, primitive::like(total, 0.5));
}
Array trapezoid_fn::operator()(const Array& y, double distance, std::int64_t axis, Where w) const {
  const Site site(w, "trapezoid");
  WeakType t = api::weak_type_of(y, "trapezoid");
  const std::size_t dim = api::axis_of("trapezoid", axis, y.shape());
  const Array wide = wide_samples(y, t);
  return primitive::cast(trapezoids(wide, primitive::like(first_of(wide, dim), distance), dim), t.dtype);
}
Array trapezoid_fn::operator()(const Array& y, const Array& x, std::int64_t axis, Where w) const {
  const Site site(w, "trapezoid");
  WeakType t = api::promoted("trapezoid", {&y, &x});
  const Shape& shape = y.shape();
  const std::size_t dim = api::axis_of("trapezoid", axis, shape);
  const bool is_vector = x.shape() == Shape{shape[dim]};
  if (!is_vector && !(x.shape() == shape))
    throw ShapeError(fmt::format(
        "trapezoid: places {} of samples {} along axis {}. They are a vector along it, or have the "
        "samples' shape. Broadcast them.",
        to_string(type_of(x)), to_string(type_of(y)), axis));
  const Array wide = wide_samples(y, t);
  Array places = wide_samples(x, t);
  if (is_vector)
    places = primitive::broadcast(places, shape,
                                  {static_cast<std::int64_t>(dim) - static_cast<std::int64_t>(shape.size())});
  return primitive::cast(
      trapezoids(wide, primitive::sub(behind_first(places, dim), first_of(places, dim)), dim), t.dtype);
}

// ---------------------------------------------------------------- interp
// table[at] for a vector; `at` must be in range.
static Array taken_at(const Array& table, const Array& at) {
  return primitive::take(table, at, 0, static_cast<std::int64_t>(at.shape().size()));
}
Array interp_fn::operator()(const Array& x, const Array& places, const Array& values, const InterpOptions& o,
                            Where w) const {
  const Site site(w, "interp");
  WeakType t = api::promoted("interp", {&x, &places, &values});
  const Shape& shape = places.shape();
  if (shape.size() != 1 || !(values.shape() == shape) || shape[0] == 0)
    throw ShapeError(fmt::format(
        "interp: places {} and values {}. Both are vectors of one size that is not 0. Use vmap for "
        "several lines.",
        to_string(type_of(places)), to_string(type_of(values))));
  const Array at = wide_samples(x, t), from = wide_samples(places, t), to = wide_samples(values, t);
  const auto number = [&](double v) { return primitive::like(at, v); };
  const std::int64_t last = shape[0] - 1;
  const Array first_place = primitive::element(from, 0, at.shape()),
              last_place = primitive::element(from, last, at.shape());
  const auto value_at = [&](std::int64_t k) { return primitive::element(to, k, at.shape()); };
  Array line = value_at(0);
  if (last > 0) {
    Array right = searchsorted(from, at, Side::right);
    right = primitive::binary(op_min, primitive::binary(op_max, right, primitive::like_whole(right, 1)),
                              primitive::like_whole(right, last));
    const Array left = primitive::sub(right, primitive::like_whole(right, 1));
    const Array low = taken_at(to, left), start = taken_at(from, left);
    const Array step = primitive::sub(taken_at(from, right), start);
    const Array is_jump = primitive::binary(op_eq, step, number(0));
    const Array part = primitive::div(primitive::sub(at, start), primitive::select(is_jump, number(1), step));
    const Array rise = primitive::mul(part, primitive::sub(taken_at(to, right), low));
    line = primitive::select(is_jump, low, primitive::add(low, rise));
  }
  line = primitive::select(primitive::binary(op_lt, at, first_place), o.left ? number(*o.left) : value_at(0),
                           line);
  line = primitive::select(primitive::binary(op_gt, at, last_place),
                           o.right ? number(*o.right) : value_at(last), line);
  return primitive::cast(line, t.dtype, t.weak);
}

// ---------------------------------------------------------------- polynomials
Array polyval_fn::operator()(const Array& p, const Array& x, Where w) const {
  const Site site(w, "polyval");
  if (type_of(p, "polyval").shape.size() != 1)
    throw ShapeError(
        fmt::format("polyval: the coefficients are {}. They are a vector, the highest power first. Use vmap "
                    "for several polynomials.",
                    to_string(type_of(p))));
  const WeakType t = api::promoted("polyval", {&p, &x});
  if (t.dtype == DType::bool_) api::refuse_dtype("polyval", x, "It takes numbers");
  const WeakType wide = api::computed(t);
  const Array coefficients = primitive::cast(api::cast(p, t), wide.dtype),
              at = primitive::cast(api::cast(x, t), wide.dtype);
  Array y;
  for (std::int64_t k = 0; k < p.shape()[0]; k++) {
    const Array c = primitive::element(coefficients, k, at.shape());
    y = y.has_value() ? primitive::add(primitive::mul(y, at), c) : c;
  }
  return primitive::cast(y.has_value() ? y : primitive::like(at, 0), t.dtype);
}

// ---------------------------------------------------------------- convolutions
// Element i is the sum over k of a[i + k - before] b[k], for `count` elements; a is 0 outside. b is the shorter one. Terms are added one
// after the other, as shifted slices, so that only halos move. They move once per piece of terms, and once from piece to piece, not from
// the first term to each; and at most one piece of shifted copies of a sharded line is stored at a time.
static constexpr std::int64_t terms_of_piece = 16;
static Array sliding_sum(const Array& a, const Array& b, std::int64_t before, std::int64_t count) {
  const std::int64_t n = a.shape()[0], m = b.shape()[0], piece = std::min(m, terms_of_piece);
  const std::int64_t last = (m - 1) / piece * piece, length = count + last, width = length + piece - 1;
  const std::int64_t behind = std::max<std::int64_t>(0, width - before - n);
  const Array padded = primitive::slice_dim(primitive::pad(a, {before}, {behind}), 0, 0, width);
  Array total;
  for (std::int64_t first = last; first >= 0; first -= piece) {
    if (total.has_value()) total = primitive::pad(primitive::slice(total, {piece}, {length}), {0}, {piece});
    for (std::int64_t k = first; k < std::min(m, first + piece); k++) {
      const Array part = primitive::slice(padded, {k - first}, {k - first + length});
      total = add_or(total, primitive::mul(part, primitive::element(b, k, {length})));
    }
  }
  return primitive::slice(total, {0}, {count});
}
// The same sum, written as the transpose of one over the result. It is not computed, but its transpose is, which slides like the one above,
// whereas the transpose of the above would store a padded line per term.
static Array slope_of_sliding_sum(const Array& a, const Array& b, std::int64_t before, std::int64_t count) {
  const std::int64_t n = a.shape()[0], m = b.shape()[0], piece = std::min(m, terms_of_piece);
  const std::int64_t last = (m - 1) / piece * piece, length = n + last, width = length + piece - 1;
  const std::int64_t offset = m - 1 - before, behind = std::max<std::int64_t>(0, offset + count - width);
  Array line = primitive::pad(a, {0}, {last}), total;
  for (std::int64_t first = 0; first <= last; first += piece) {
    if (first > 0) line = primitive::pad(primitive::slice(line, {0}, {length - piece}), {piece}, {0});
    for (std::int64_t k = first; k < std::min(m, first + piece); k++) {
      const Array term = primitive::mul(line, primitive::element(b, m - 1 - k, {length}));
      total = add_or(total, primitive::pad(term, {k - first}, {first + piece - 1 - k}));
    }
  }
  return primitive::slice(primitive::pad(total, {0}, {behind}), {offset}, {offset + count});
}
static Array convolution(const char* function, const Array& a, const Array& b, ConvolveMode mode,
                         bool is_turned) {
  WeakType t = api::promoted(function, {&a, &b});
  for (const Array* x : {&a, &b})
    if (x->shape().size() != 1 || x->shape()[0] == 0)
      throw ShapeError(
          fmt::format("{}: operands {} and {}. Both are vectors with elements. Use vmap for several lines.",
                      function, to_string(type_of(a)), to_string(type_of(b))));
  const bool is_swapped = a.shape()[0] < b.shape()[0];
  Array longer = wide_samples(is_swapped ? b : a, t), shorter = wide_samples(is_swapped ? a : b, t);
  if (is_turned)
    shorter = primitive::reverse(shorter, {-1});  // correlate does not flip: a sum over a[i + k] b[k]
  const std::int64_t n = longer.shape()[0], m = shorter.shape()[0];
  std::int64_t before = m - 1, count = n + m - 1;
  if (mode == ConvolveMode::same) {
    before = m / 2;
    count = n;
  } else if (mode == ConvolveMode::valid) {
    before = 0;
    count = n - m + 1;
  }
  Array y = sliding_sum(longer, shorter, before, count);
  const TraceState& state = trace_state();
  if (!state.open.empty() || !state.gradients.empty())  // otherwise it would be a long chain for nothing
    y = primitive::with_slope_of(y, slope_of_sliding_sum(longer, shorter, before, count));
  if (is_swapped && !is_turned) y = primitive::reverse(y, {-1});
  return primitive::cast(y, t.dtype, t.weak);
}
Array convolve_fn::operator()(const Array& a, const Array& b, ConvolveMode mode, Where w) const {
  const Site site(w, "convolve");
  return convolution("convolve", a, b, mode, true);
}
Array correlate_fn::operator()(const Array& a, const Array& b, ConvolveMode mode, Where w) const {
  const Site site(w, "correlate");
  type_of(b, "correlate");
  return convolution("correlate", a, primitive::conj(b), mode, false);
}

}  // namespace shardarray
