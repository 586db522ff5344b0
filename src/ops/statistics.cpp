// Statistics composed of reductions, running reductions and sorting, with and without NaN.
#include "shardarray/statistics.h"

#include <fmt/core.h>

#include <cmath>
#include <limits>

#include "base/complex_parts.h"
#include "graph/trace_state.h"
#include "ops/reducing.h"
#include "shardarray/linalg.h"

namespace shardarray {

constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

// ---------------------------------------------------------------- over all elements
static Array ptp_body(const char* function, const Array& x, const ReduceOptions& o) {
  refuse_choice(function, o);
  if (o.dtype.value_or(type_of(x, function).dtype) == DType::bool_)
    api::refuse_dtype(function, x, "It takes numbers");
  return primitive::sub(max(x, o), min(x, o));
}
template <>
SHARDARRAY_API Array ReduceFunction<"ptp">::operator()(const Array& x, const ReduceOptions& o,
                                                       Where w) const {
  const Site site(w, "ptp");
  return ptp_body("ptp", x, o);
}

static Array count_body(const char* function, const Array& x, const ReduceOptions& o) {
  ReduceOptions counted = o;
  counted.dtype = o.dtype.value_or(DType::int32);
  return sum(api::to_bool(x, function), counted);
}
template <>
SHARDARRAY_API Array ReduceFunction<"count_nonzero">::operator()(const Array& x, const ReduceOptions& o,
                                                                 Where w) const {
  const Site site(w, "count_nonzero");
  return count_body("count_nonzero", x, o);
}

// The weights, broadcast to the shape of x.
static Array spread_weights(const Array& x, const Array& weights, const ReduceOptions& o) {
  const Shape &shape = x.shape(), &mine = type_of(weights, "average").shape;
  if (mine == shape) return weights;
  const Shape axes = reduced_axes("average", x, o);
  if (axes.size() != 1 || mine.size() != 1 || mine[0] != shape[static_cast<std::size_t>(axes[0])])
    throw ShapeError(fmt::format(
        "average: weights {} of {} along axes {}. They have its shape, or are a vector along the one axis. "
        "Reshape or broadcast them.",
        to_string(type_of(weights)), to_string(type_of(x)), to_string(axes)));
  return primitive::broadcast(weights, shape, {axes[0] - static_cast<std::int64_t>(shape.size())});
}
Array average_fn::operator()(const Array& x, Where w) const {
  const Site site(w, "average");
  return mean(x);
}
Array average_fn::operator()(const Array& x, const Array& weights, const ReduceOptions& o, Where w) const {
  const Site site(w, "average");
  refuse_choice("average", o);
  const WeakType joint = api::promoted("average", {&x, &weights});
  const Array numbers = inexact("average", primitive::cast(x, joint.dtype), o);
  const DType t = numbers.dtype(), wide = api::computed(t);
  const Array spread = spread_weights(x, weights, o), values = primitive::cast(numbers, wide);
  const Array factors = primitive::cast(primitive::cast(spread, t), wide);
  const Shape axes = reduced_axes("average", x, o);
  // masked NaN must not count, and 0 times NaN is NaN
  const Array terms = spread.dtype() == DType::bool_
                          ? primitive::select(spread, values, primitive::like(values, 0))
                          : primitive::mul(values, factors);
  const Array total = reduced(Reducer::sum, terms, axes, o.keepdims);
  return primitive::cast(primitive::div(total, reduced(Reducer::sum, factors, axes, o.keepdims)), t);
}

// ---------------------------------------------------------------- quantiles
// The axes merged into one last dimension, sorted.
static Array sorted_last(const Array& x, const Shape& axes) {
  Shape perm, shape;
  for (std::int64_t d = 0; d < static_cast<std::int64_t>(x.shape().size()); d++)
    if (std::find(axes.begin(), axes.end(), d) == axes.end()) {
      perm.push_back(d);
      shape.push_back(x.shape()[static_cast<std::size_t>(d)]);
    }
  for (std::int64_t d : axes) perm.push_back(d);
  shape.push_back(count_of(x.shape(), axes));
  const Array lines = primitive::reshape(primitive::transpose(x, perm), shape);
  return primitive::sort({&lines, 1}, shape.size() - 1)[0];
}
static double part_of_higher(QuantileMethod method, double between) {
  switch (method) {
    case QuantileMethod::lower: return 0;
    case QuantileMethod::higher: return between > 0 ? 1 : 0;
    case QuantileMethod::midpoint: return between > 0 ? 0.5 : 0;
    case QuantileMethod::nearest: return between > 0.5 ? 1 : 0;
    default: return between;
  }
}
// One quantile of sorted lines [.., n] -> [..].
static Array quantile_of(const Array& sorted, double q, QuantileMethod method) {
  const std::size_t last = sorted.shape().size() - 1;
  const std::int64_t n = sorted.shape()[last];
  Shape shape = sorted.shape();
  shape.pop_back();
  const double position = q * static_cast<double>(n - 1), below = std::floor(position);
  const double higher = part_of_higher(method, position - below);
  const auto at = [&](std::int64_t k) {
    return primitive::reshape(primitive::slice_dim(sorted, last, k, k + 1), shape);
  };
  const auto low = static_cast<std::int64_t>(below);
  if (higher == 0) return at(low);
  Array high = at(low + 1);
  if (higher == 1) return high;
  return primitive::add(primitive::mul(at(low), primitive::like(high, 1 - higher)),
                        primitive::mul(high, primitive::like(high, higher)));
}
// The same for the elements before NaN, `count` [..] of them (NaN if there are none).
static Array quantile_of_some(const Array& sorted, const Array& count, double q, QuantileMethod method) {
  const std::size_t last = sorted.shape().size() - 1;
  const Array most =
      primitive::cast(primitive::binary(op_max, primitive::sub(count, primitive::like_whole(count, 1)),
                                        primitive::like_whole(count, 0)),
                      DType::float64);  // float32 would not hold every position
  const Array position = primitive::mul(most, primitive::like(most, q)),
              below = primitive::unary(op_floor, position);
  const Array between = primitive::cast(primitive::sub(position, below), sorted.dtype()),
              zero = primitive::like(between, 0);
  const auto if_above = [&](double limit, double part) {
    return primitive::select(primitive::binary(op_gt, between, primitive::like(between, limit)),
                             primitive::like(between, part), zero);
  };
  const Array higher = method == QuantileMethod::lower      ? zero
                       : method == QuantileMethod::higher   ? if_above(0, 1)
                       : method == QuantileMethod::midpoint ? if_above(0, 0.5)
                       : method == QuantileMethod::nearest  ? if_above(0.5, 1)
                                                            : between;
  const Array low = primitive::cast(below, count.dtype());
  const Array next = primitive::binary(op_min, primitive::add(low, primitive::like_whole(low, 1)),
                                       primitive::cast(most, count.dtype()));
  const auto at = [&](const Array& k) {
    Shape one = k.shape();
    one.push_back(1);
    return primitive::reshape(primitive::take_along(sorted, primitive::reshape(k, one), last), k.shape());
  };
  const Array lower_one = at(low), higher_one = at(next), one = primitive::like(higher, 1);
  const Array between_them = primitive::add(primitive::mul(lower_one, primitive::sub(one, higher)),
                                            primitive::mul(higher_one, higher));
  // A single neighbour is taken as it is: 0 times infinity is NaN.
  return primitive::select(
      primitive::binary(op_eq, higher, zero), lower_one,
      primitive::select(primitive::binary(op_eq, higher, one), higher_one, between_them));
}
namespace {
struct QuantilesAsked {
  const std::vector<double>& q;
  double most;       // upper limit of q
  bool is_stacked;   // adds a first dimension
  bool ignores_nan;  // otherwise a NaN makes the result NaN
};
}  // namespace
static Array quantiles(const char* function, const Array& x, const QuantilesAsked& asked,
                       const QuantileOptions& o) {
  for (double each : asked.q)
    if (!(each >= 0 && each <= asked.most))
      throw Error(fmt::format("{}: q is {}. It lies between 0 and {}. Give a part of the elements.", function,
                              each, asked.most));
  const ReduceOptions over{.axis = o.axis, .keepdims = o.keepdims};
  const Array narrow = inexact(function, x, over);
  const Shape axes = reduced_axes(function, x, over);
  need_elements(function, x, axes);
  const Array sorted = sorted_last(primitive::cast(narrow, api::computed(narrow.dtype())), axes);
  const Array greatest = quantile_of(sorted, 1, QuantileMethod::lower);  // NaN if there is one
  const Array is_nan = primitive::binary(op_ne, greatest, greatest),
              nan = primitive::like(greatest, no_number);
  const Array count = asked.ignores_nan
                          ? sum(primitive::binary(op_eq, sorted, sorted),
                                {.axis = -1, .dtype = api::position_type({sorted.shape().back()})})
                          : Array();
  const auto one = [&](double q) {
    if (asked.ignores_nan) return quantile_of_some(sorted, count, q, o.method);
    return primitive::select(is_nan, nan, quantile_of(sorted, q, o.method));
  };
  std::vector<Array> results;
  results.reserve(asked.q.size());
  for (double each : asked.q)
    results.push_back(
        with_kept(primitive::cast(one(each / asked.most), narrow.dtype()), x.shape(), axes, o.keepdims));
  if (!asked.is_stacked) return results[0];
  if (!results.empty()) return stack(results);
  Shape none_asked = with_kept(greatest, x.shape(), axes, o.keepdims).shape();
  none_asked.insert(0, 0);
  return zeros_of({none_asked, narrow.dtype(), false});
}
Array quantile_fn::operator()(const Array& x, double q, const QuantileOptions& o, Where w) const {
  const Site site(w, "quantile");
  return quantiles("quantile", x, {{q}, 1, false, false}, o);
}
Array quantile_fn::operator()(const Array& x, const std::vector<double>& q, const QuantileOptions& o,
                              Where w) const {
  const Site site(w, "quantile");
  return quantiles("quantile", x, {q, 1, true, false}, o);
}
Array percentile_fn::operator()(const Array& x, double q, const QuantileOptions& o, Where w) const {
  const Site site(w, "percentile");
  return quantiles("percentile", x, {{q}, 100, false, false}, o);
}
Array percentile_fn::operator()(const Array& x, const std::vector<double>& q, const QuantileOptions& o,
                                Where w) const {
  const Site site(w, "percentile");
  return quantiles("percentile", x, {q, 100, true, false}, o);
}
Array nanquantile_fn::operator()(const Array& x, double q, const QuantileOptions& o, Where w) const {
  const Site site(w, "nanquantile");
  return quantiles("nanquantile", x, {{q}, 1, false, true}, o);
}
Array nanquantile_fn::operator()(const Array& x, const std::vector<double>& q, const QuantileOptions& o,
                                 Where w) const {
  const Site site(w, "nanquantile");
  return quantiles("nanquantile", x, {q, 1, true, true}, o);
}
Array nanpercentile_fn::operator()(const Array& x, double q, const QuantileOptions& o, Where w) const {
  const Site site(w, "nanpercentile");
  return quantiles("nanpercentile", x, {{q}, 100, false, true}, o);
}
Array nanpercentile_fn::operator()(const Array& x, const std::vector<double>& q, const QuantileOptions& o,
                                   Where w) const {
  const Site site(w, "nanpercentile");
  return quantiles("nanpercentile", x, {q, 100, true, true}, o);
}
static Array median_body(const char* function, const Array& x, const ReduceOptions& o, bool ignores_nan) {
  refuse_choice(function, o);
  return quantiles(function, inexact(function, x, o), {{0.5}, 1, false, ignores_nan},
                   {.axis = o.axis, .keepdims = o.keepdims});
}
template <>
SHARDARRAY_API Array ReduceFunction<"median">::operator()(const Array& x, const ReduceOptions& o,
                                                          Where w) const {
  const Site site(w, "median");
  return median_body("median", x, o, false);
}
template <>
SHARDARRAY_API Array ReduceFunction<"nanmedian">::operator()(const Array& x, const ReduceOptions& o,
                                                             Where w) const {
  const Site site(w, "nanmedian");
  return median_body("nanmedian", x, o, true);
}

// ---------------------------------------------------------------- norms
// Norms of |x| along the axes, kept with size 1 if keepdims; in the accumulation dtype.
static Array norm_along(const char* function, const Array& size, double ord, const Shape& axes,
                        bool keepdims) {
  if (std::isinf(ord)) {
    need_elements(function, size, axes);
    return reduced(ord > 0 ? Reducer::max : Reducer::min, size, axes, keepdims);
  }
  if (ord == 0)
    return reduced(Reducer::sum,
                   primitive::cast(primitive::binary(op_ne, size, primitive::like(size, 0)), size.dtype()),
                   axes, keepdims);
  if (ord == 1) return reduced(Reducer::sum, size, axes, keepdims);
  if (ord == 2)
    return primitive::unary(op_sqrt, reduced(Reducer::sum, primitive::mul(size, size), axes, keepdims));
  return power(reduced(Reducer::sum, power(size, ord), axes, keepdims), 1 / ord);
}
static Array wide_size(const Array& narrow, double ord) {
  const Array wide = primitive::cast(narrow, api::computed(narrow.dtype()));
  if (is_complex(wide.dtype())) return abs(wide);
  return ord == 2 ? wide : primitive::unary(op_abs, wide);  // squaring needs no abs
}
Array vector_norm_fn::operator()(const Array& x, const NormOptions& o, Where w) const {
  const Site site(w, "vector_norm");
  if (o.nuclear)
    throw Error(
        fmt::format("{}: nuclear of vectors. Matrices have singular values. Name two axes, or leave it out.",
                    current_function("vector_norm")));
  const ReduceOptions over{.axis = o.axis, .keepdims = o.keepdims};
  const Array y = inexact("vector_norm", x, over);
  const double ord = o.ord.value_or(2);
  return primitive::cast(
      norm_along("vector_norm", wide_size(y, ord), ord, reduced_axes("vector_norm", x, over), o.keepdims),
      part_type(y.dtype()));
}
// Sums |x| along one of the two axes, and takes the extremum along the other one.
static Array matrix_norm(const Array& x, const NormOptions& o) {
  const double ord = o.ord.value_or(0);
  if (o.ord && (o.nuclear || (std::abs(ord) != 1 && std::abs(ord) != 2 && !std::isinf(ord))))
    throw Error(fmt::format(
        "norm: order {}{} of matrices. The orders are 1, -1, 2, -2, infinity and -infinity. Leave it "
        "out for the root of the sum of squares, say nuclear alone, or use vector_norm.",
        ord, o.nuclear ? " and nuclear" : ""));
  const Shape& shape = x.shape();
  const std::size_t row = api::axis_of("norm", o.axis.all ? 0 : o.axis.axes[0], shape),
                    column = api::axis_of("norm", o.axis.all ? 1 : o.axis.axes[1], shape);
  if (o.nuclear || std::abs(ord) == 2) {
    const Array last =
        moveaxis(x, Shape{static_cast<std::int64_t>(row), static_cast<std::int64_t>(column)}, Shape{-2, -1});
    const Array r = linalg::matrix_norm(last, {.ord = o.ord, .nuclear = o.nuclear});
    return with_kept(r, shape, reduced_axes("norm", x, {.axis = o.axis}), o.keepdims);
  }
  const auto summed_axis = static_cast<std::int64_t>(std::isinf(ord) ? column : row),
             other = static_cast<std::int64_t>(std::isinf(ord) ? row : column);
  const Array y = inexact("norm", x, {}), sums = reduced(Reducer::sum, wide_size(y, 1), {summed_axis}, true);
  need_elements("norm", sums, {other});
  const Shape axes = reduced_axes("norm", x, {.axis = o.axis});
  const Array best = reduced(ord > 0 ? Reducer::max : Reducer::min, sums, {other}, true);
  Shape rest;
  for (std::size_t d = 0; d < shape.size(); d++)
    if (d != row && d != column) rest.push_back(shape[d]);
  return primitive::cast(o.keepdims ? best : primitive::reshape(best, rest), part_type(y.dtype()));
}
Array norm_fn::operator()(const Array& x, const NormOptions& o, Where w) const {
  const Site site(w, "norm");
  const std::size_t count = reduced_axes("norm", x, {.axis = o.axis}).size();
  if ((!o.ord && !o.nuclear) || count == 1) return vector_norm(x, o);
  if (count == 2) return matrix_norm(x, o);
  throw ShapeError(
      fmt::format("norm: {} over {} axes of {}. An order is one of vectors or of matrices. Name one axis or "
                  "two, or use vector_norm.",
                  o.nuclear ? std::string("the nuclear norm") : fmt::format("order {}", *o.ord), count,
                  to_string(type_of(x))));
}

}  // namespace shardarray
