// The public reductions and what is made of them.
#include <fmt/core.h>

#include <limits>

#include "ops/api.h"
#include "shardarray/ops.h"

namespace shardarray {

using api::weak_type_of;

static Shape reduced_axes(const char* function, const Array& x, const ReduceOptions& o) {
  const Shape& shape = type_of(x, function).shape;
  if (!o.axis.all) return api::axes_of(function, o.axis.axes, shape);
  Shape axes;
  for (std::size_t d = 0; d < shape.size(); d++) axes.push_back(static_cast<std::int64_t>(d));
  return axes;
}
static Array with_kept(const Array& reduced, const Shape& from, const Shape& axes, bool keepdims) {
  if (!keepdims) return reduced;
  Shape shape = from;
  for (std::int64_t a : axes) shape[static_cast<std::size_t>(a)] = 1;
  return prim::reshape(reduced, shape);
}
static std::int64_t count_of(const Shape& shape, const Shape& axes) {
  std::int64_t n = 1;
  for (std::int64_t a : axes) n *= shape[static_cast<std::size_t>(a)];
  return n;
}
static Array reduced(Reducer r, const Array& x, const Shape& axes, bool keepdims) {
  return with_kept(prim::reduce(r, x, axes), x.shape(), axes, keepdims);
}
// float16 and bfloat16 accumulate in float32.
static DType accumulator(DType t) { return t == DType::float16 || t == DType::bfloat16 ? DType::float32 : t; }

// sum and prod of integers have at least 32 bits.
static Array accumulated(const char* function, Reducer r, const Array& x, const ReduceOptions& o) {
  DType t = o.dtype.value_or(weak_type_of(x, function).dtype);
  if (o.dtype) api::need_real(function, t);
  if (!o.dtype && !is_inexact(t) && itemsize(t) < 4)
    t = is_unsigned_integer(t) ? DType::uint32 : DType::int32;
  if (t == DType::bool_) {
    const Reducer logical = r == Reducer::sum ? Reducer::any : Reducer::all;
    return reduced(logical, api::to_bool(x, function), reduced_axes(function, x, o), o.keepdims);
  }
  const Array y = prim::cast(prim::cast(x, t), accumulator(t));
  return prim::cast(reduced(r, y, reduced_axes(function, x, o), o.keepdims), t);
}
Array sum_fn::operator()(const Array& x, const ReduceOptions& o, Where w) const {
  const Site site(w, "sum");
  return accumulated("sum", Reducer::sum, x, o);
}
Array prod_fn::operator()(const Array& x, const ReduceOptions& o, Where w) const {
  const Site site(w, "prod");
  return accumulated("prod", Reducer::prod, x, o);
}

// The floating operand of mean, var and so on; strong.
static Array inexact(const char* function, const Array& x, const ReduceOptions& o) {
  const DType t = o.dtype.value_or(api::to_inexact(weak_type_of(x, function)).dtype);
  if (o.dtype) api::need_real(function, t);
  if (!is_inexact(t))
    throw DTypeError(fmt::format("{}: dtype {} was asked for. The result is floating. Give a floating dtype.",
                                 function, name(t)));
  return prim::cast(x, t);
}
static Array averaged(const Array& x, const Shape& axes, bool keepdims, double divisor) {
  const Array total = reduced(Reducer::sum, x, axes, keepdims);
  return prim::div(total, prim::like(total, divisor));
}
Array mean_fn::operator()(const Array& x, const ReduceOptions& o, Where w) const {
  const Site site(w, "mean");
  const Array y = inexact("mean", x, o);
  const Shape axes = reduced_axes("mean", x, o);
  return prim::cast(averaged(prim::cast(y, accumulator(y.dtype())), axes, o.keepdims,
                             static_cast<double>(count_of(x.shape(), axes))),
                    y.dtype());
}
Array var_fn::operator()(const Array& x, const ReduceOptions& o, std::int64_t ddof, Where w) const {
  const Site site(w, "var");
  const Array y = inexact("var", x, o), wide = prim::cast(y, accumulator(y.dtype()));
  const Shape axes = reduced_axes("var", x, o);
  const auto n = static_cast<double>(count_of(x.shape(), axes));
  const Array centred = prim::sub(wide, prim::broadcast_to(averaged(wide, axes, true, n), wide.shape()));
  return prim::cast(averaged(prim::mul(centred, centred), axes, o.keepdims, n - static_cast<double>(ddof)),
                    y.dtype());
}

// ---------------------------------------------------------------- extrema
static void need_elements(const char* function, const Array& x, const Shape& axes) {
  if (count_of(x.shape(), axes) == 0)
    throw ShapeError(
        fmt::format("{}: {} has no elements along axes {}. No element has an extremum. Check the size first.",
                    function, to_string(type_of(x)), to_string(axes)));
}
static Array extremum(const char* function, Reducer r, Reducer of_bool, const Array& x,
                      const ReduceOptions& o) {
  const Shape axes = reduced_axes(function, x, o);
  need_elements(function, x, axes);
  if (o.dtype) api::need_real(function, *o.dtype);
  const Array y = prim::cast(x, o.dtype.value_or(x.dtype()));
  return reduced(y.dtype() == DType::bool_ ? of_bool : r, y, axes, o.keepdims);
}
Array max_fn::operator()(const Array& x, const ReduceOptions& o, Where w) const {
  const Site site(w, "max");
  return extremum("max", Reducer::max, Reducer::any, x, o);
}
Array min_fn::operator()(const Array& x, const ReduceOptions& o, Where w) const {
  const Site site(w, "min");
  return extremum("min", Reducer::min, Reducer::all, x, o);
}
Array any_fn::operator()(const Array& x, const ReduceOptions& o, Where w) const {
  const Site site(w, "any");
  return reduced(Reducer::any, api::to_bool(x, "any"), reduced_axes("any", x, o), o.keepdims);
}
Array all_fn::operator()(const Array& x, const ReduceOptions& o, Where w) const {
  const Site site(w, "all");
  return reduced(Reducer::all, api::to_bool(x, "all"), reduced_axes("all", x, o), o.keepdims);
}

// The lowest position of the extremum, or of a NaN.
static Array position(const char* function, Reducer r, const Array& x, const ReduceOptions& o) {
  Array y = weak_type_of(x, function).dtype == DType::bool_ ? prim::cast(x, DType::int32) : x;
  std::size_t dim = 0;
  if (o.axis.all) {
    y = prim::reshape(y, {y.size()});
  } else {
    if (o.axis.axes.size() != 1)
      throw ShapeError(
          fmt::format("{}: axes {}. It takes one axis, or none for the flattened array. Reshape first.",
                      function, to_string(o.axis.axes)));
    dim = api::axis_of(function, o.axis.axes[0], y.shape());
  }
  const Shape axes{static_cast<std::int64_t>(dim)};
  need_elements(function, y, axes);
  const Array best = prim::broadcast_to(reduced(r, y, axes, true), y.shape());
  Array hit = prim::binary(op_eq, y, best);
  if (is_floating(y.dtype())) hit = prim::binary(op_or, hit, prim::binary(op_ne, y, y));
  const Array where_hit =
      prim::select(hit, prim::iota(y.shape(), dim, DType::int32),
                   prim::full(y.shape(), DType::int32, static_cast<double>(y.shape()[dim])));
  Array found = reduced(Reducer::min, where_hit, axes, false);
  if (!o.keepdims) return found;
  Shape kept = o.axis.all ? Shape::filled(x.shape().size(), 1) : x.shape();
  if (!o.axis.all) kept[dim] = 1;
  return prim::reshape(found, kept);
}
Array argmax_fn::operator()(const Array& x, const ReduceOptions& o, Where w) const {
  const Site site(w, "argmax");
  return position("argmax", Reducer::max, x, o);
}
Array argmin_fn::operator()(const Array& x, const ReduceOptions& o, Where w) const {
  const Site site(w, "argmin");
  return position("argmin", Reducer::min, x, o);
}

// ---------------------------------------------------------------- exponentials
static Array constant_max(const Array& x, const Shape& axes) {
  return prim::unary(op_stop_gradient, reduced(Reducer::max, x, axes, true));
}
Array logsumexp_fn::operator()(const Array& x, const ReduceOptions& o, Where w) const {
  const Site site(w, "logsumexp");
  const Array narrow = inexact("logsumexp", x, o), y = prim::cast(narrow, accumulator(narrow.dtype()));
  const Shape axes = reduced_axes("logsumexp", x, o);
  if (count_of(y.shape(), axes) == 0)  // log(0)
    return prim::cast(prim::unary(op_log, reduced(Reducer::sum, y, axes, o.keepdims)), narrow.dtype());
  const Array top = constant_max(y, axes);
  const Array shift = prim::select(prim::unary(op_is_finite, top), top, prim::like(top, 0));
  const Array total =
      prim::reduce(Reducer::sum, prim::exp(prim::sub(y, prim::broadcast_to(shift, y.shape()))), axes);
  const Array result = prim::add(prim::unary(op_log, total), prim::reshape(shift, total.shape()));
  return with_kept(prim::cast(result, narrow.dtype()), y.shape(), axes, o.keepdims);
}
// x - max(x) along the axis, as wide as its sums are; `t`: the dtype of the result.
static Array shifted(const char* function, const Array& x, std::int64_t axis, Shape& axes, DType& t) {
  Array y = inexact(function, x, {});
  t = y.dtype();
  y = prim::cast(y, accumulator(t));
  axes = {static_cast<std::int64_t>(api::axis_of(function, axis, y.shape()))};
  if (y.size() == 0) return y;
  return prim::sub(y, prim::broadcast_to(constant_max(y, axes), y.shape()));
}
Array softmax_fn::operator()(const Array& x, std::int64_t axis, Where w) const {
  const Site site(w, "softmax");
  Shape axes;
  DType t{};
  const Array e = prim::exp(shifted("softmax", x, axis, axes, t));
  return prim::cast(prim::div(e, prim::broadcast_to(reduced(Reducer::sum, e, axes, true), e.shape())), t);
}
Array log_softmax_fn::operator()(const Array& x, std::int64_t axis, Where w) const {
  const Site site(w, "log_softmax");
  Shape axes;
  DType t{};
  const Array y = shifted("log_softmax", x, axis, axes, t);
  const Array total = prim::unary(op_log, reduced(Reducer::sum, prim::exp(y), axes, true));
  return prim::cast(prim::sub(y, prim::broadcast_to(total, y.shape())), t);
}
Array one_hot_fn::operator()(const Array& x, std::int64_t n, DType dtype, Where w) const {
  const Site site(w, "one_hot");
  api::need_integers("one_hot", x);
  api::need_real("one_hot", dtype);
  if (n < 0)
    throw ShapeError(fmt::format(
        "one_hot: n is {}. The number of classes is not negative. Give the number of classes.", n));
  const bool fits = itemsize(x.dtype()) >= 4 && prim::is_value(x.dtype(), n, false);
  const Array y = fits ? x : prim::cast(x, api::position_type({n}));
  Shape shape = y.shape();
  shape.push_back(1);
  const Array column = prim::reshape(y, shape);
  shape.back() = n;
  return prim::cast(
      prim::binary(op_eq, prim::broadcast_to(column, shape), prim::iota(shape, shape.size() - 1, y.dtype())),
      dtype);
}

}  // namespace shardarray
