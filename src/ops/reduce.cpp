// Reductions, and functions composed of them.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/complex_parts.h"
#include "ops/complex.h"
#include "ops/function.h"
#include "ops/reducing.h"
#include "ops/rules.h"

namespace shardarray {

using namespace rules;

// The reduced dimensions as non-negative numbers, increasing.
static Shape reduced_dims(const Attrs& a, std::size_t rank) {
  Shape dims;
  for (std::int64_t d : a.dims) dims.push_back(static_cast<std::int64_t>(from_first(d, rank)));
  std::sort(dims.begin(), dims.end());
  return dims;
}
static bool contains(const Shape& dims, std::size_t d) {
  return std::find(dims.begin(), dims.end(), static_cast<std::int64_t>(d)) != dims.end();
}

static Types reduce_type(const Call& c) {
  const Reducer r = c.attrs->reducer;
  const bool logical = r == Reducer::any || r == Reducer::all;
  if (r == Reducer::none || logical != (c.in[0].dtype == DType::bool_))
    throw InternalError(fmt::format("reduce: {} of {}. any and all take bool, the others numbers.", name(r),
                                    to_string(c.in[0])));
  const Shape dims = reduced_dims(*c.attrs, c.in[0].shape.size());
  Type t{{}, c.in[0].dtype, c.in[0].weak};
  for (std::size_t d = 0; d < c.in[0].shape.size(); d++)
    if (!contains(dims, d)) t.shape.push_back(c.in[0].shape[d]);
  return {t};
}

static Rule reduce_rule(const Call& c) {
  Rule r;
  std::vector<DimFactors> in, out;
  const Shape dims = reduced_dims(*c.attrs, c.in[0].shape.size());
  for (std::size_t d = 0; d < c.in[0].shape.size(); d++) {
    const bool goes = contains(dims, d);
    in.push_back(goes ? add_summed(r, c, c.in[0].shape[d], c.attrs->reducer)
                      : add_factor(r, c.in[0].shape[d]));
    if (!goes) out.push_back(in.back());
  }
  r.operands = {in};
  r.results = {out};
  return r;
}

// JAX's derivative of max and min: all elements that attain it share it equally; NaN if none does (for NaN).
static Array extremum_tangent(const JvpArgs& v, const Shape& dims) {
  const Array &x = v.in[0], &t = v.tangents[0];
  const Array hit = primitive::cast(
      primitive::binary(op_eq, x, primitive::expand_reduced(v.out[0], x.shape(), dims)), x.dtype(), true);
  const Array count = primitive::reduce(Reducer::sum, hit, dims);
  return primitive::div(primitive::reduce(Reducer::sum, primitive::mul(t, hit), dims), count);
}

// Product rule on halves, (a, da)(b, db) = (ab, da b + a db), until one element is left. Correct even if elements are zero.
static Array product_tangent(const JvpArgs& v, const Shape& dims) {
  const Shape& shape = v.in[0].shape();
  Shape perm, merged;
  std::int64_t n = 1;
  for (std::size_t d = 0; d < shape.size(); d++) {
    if (contains(dims, d)) {
      n *= shape[d];
      continue;
    }
    perm.push_back(static_cast<std::int64_t>(d));
    merged.push_back(shape[d]);
  }
  for (std::int64_t d : dims) perm.push_back(d);
  if (n == 0) return {};
  const std::size_t last = merged.size();
  merged.push_back(n);
  auto arranged = [&](const Array& x) { return primitive::reshape(primitive::transpose(x, perm), merged); };
  Array x = arranged(v.in[0]), t = arranged(v.tangents[0]);
  while (n > 1) {
    const std::int64_t half = n / 2;
    auto part = [&](const Array& y, std::int64_t lo, std::int64_t hi) {
      return primitive::slice_dim(y, last, lo, hi);
    };
    const Array a = part(x, 0, half), b = part(x, half, 2 * half);
    Arrays products{primitive::mul(a, b)},
        tangents{
            primitive::add(primitive::mul(part(t, 0, half), b), primitive::mul(part(t, half, 2 * half), a))};
    if (n % 2) {
      products.push_back(part(x, n - 1, n));
      tangents.push_back(part(t, n - 1, n));
    }
    x = primitive::concatenate(products, last);
    t = primitive::concatenate(tangents, last);
    n -= half;
  }
  return primitive::reshape(t, v.out[0].shape());
}

static Arrays reduce_jvp(const JvpArgs& v) {
  const Attrs& a = v.node.attrs();
  const Shape dims = reduced_dims(a, v.in[0].shape().size());
  switch (a.reducer) {
    case Reducer::sum: return {record(op_reduce, {v.tangents[0]}, a)};
    case Reducer::max:
    case Reducer::min: return {extremum_tangent(v, dims)};
    case Reducer::prod: return {product_tangent(v, dims)};
    default: return no_tangent(v);
  }
}

// attrs.reducer over attrs.dims, which are removed.
SHARDARRAY_OP op_reduce{.name = "reduce",
                        .form = Form::reduce,
                        .rule = reduce_rule,
                        .type = reduce_type,
                        .linearity = joint_sum,
                        .jvp = reduce_jvp,
                        .transpose =
                            [](const TransposeArgs& t) {
                              const Shape& shape = t.in[0].shape();
                              return Arrays{primitive::expand_reduced(
                                  t.cotangents[0], shape, reduced_dims(t.node.attrs(), shape.size()))};
                            },
                        .on_parts = complex_ops::reduce};

Shape reduced_axes(const char* function, const Array& x, const ReduceOptions& o) {
  const Shape& shape = type_of(x, function).shape;
  if (!o.axis.all) return api::axes_of(function, o.axis.axes, shape);
  Shape axes;
  for (std::size_t d = 0; d < shape.size(); d++) axes.push_back(static_cast<std::int64_t>(d));
  return axes;
}
Array with_kept(const Array& reduced, const Shape& from, const Shape& axes, bool keepdims) {
  if (!keepdims) return reduced;
  Shape shape = from;
  for (std::int64_t a : axes) shape[static_cast<std::size_t>(a)] = 1;
  return primitive::reshape(reduced, shape);
}
std::int64_t count_of(const Shape& shape, const Shape& axes) {
  std::int64_t n = 1;
  for (std::int64_t a : axes) n *= shape[static_cast<std::size_t>(a)];
  return n;
}
Array reduced(Reducer r, const Array& x, const Shape& axes, bool keepdims) {
  return with_kept(primitive::reduce(r, x, axes), x.shape(), axes, keepdims);
}

// ---------------------------------------------------------------- masks and initial values
Array chosen_elements(const char* function, const Array& x, const ReduceOptions& o) {
  if (!o.where.array) return {};
  const Array& mask = *o.where.array;
  const Shape &shape = type_of(x, function).shape, &mine = type_of(mask, function).shape;
  if (!(api::common_shape(function, std::vector{shape, mine}) == shape))
    throw ShapeError(fmt::format(
        "{}: .where is {} for {}. It is broadcast to the operand's shape. Broadcast the operand before.",
        current_function(function), to_string(type_of(mask)), to_string(type_of(x))));
  return primitive::broadcast_to(api::to_bool(mask, function), shape);
}
Array only_chosen(const Array& chosen, Reducer r, const Array& x) {
  if (!chosen.has_value()) return x;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double neutral = r == Reducer::prod || r == Reducer::all ? 1
                         : r == Reducer::max                     ? -infinity
                         : r == Reducer::min                     ? infinity
                                                                 : 0;
  if (is_complex(x.dtype()) && std::isinf(neutral)) {  // equal real parts are decided by the imaginary ones
    const Array part = primitive::like(primitive::real(x), neutral);
    return primitive::select(chosen, x, primitive::pair(part, part));
  }
  return primitive::select(chosen, x, primitive::like(x, neutral));
}
static const Op& operation(Reducer r) {
  switch (r) {
    case Reducer::sum: return op_add;
    case Reducer::prod: return op_mul;
    case Reducer::max: return op_max;
    case Reducer::min: return op_min;
    case Reducer::any: return op_or;
    default: return op_and;
  }
}
Array reduced_as(const char* function, Reducer r, const Array& x, const ReduceOptions& o) {
  Array result = reduced(r, only_chosen(chosen_elements(function, x, o), r, x), reduced_axes(function, x, o),
                         o.keepdims);
  if (!o.initial.array) return result;
  const Array& initial = *o.initial.array;
  if (!type_of(initial, function).shape.empty())
    throw ShapeError(fmt::format("{}: .initial is {}. It is a scalar. Use add, maximum and so on for arrays.",
                                 current_function(function), to_string(type_of(initial))));
  const Array first = result.dtype() == DType::bool_ ? api::to_bool(initial, function)
                                                     : api::cast(initial, {result.dtype(), false});
  return primitive::binary(operation(r), primitive::broadcast_to(first, result.shape()), result);
}
void refuse_initial(const char* function, const ReduceOptions& o) {
  if (o.initial.array)
    throw Error(fmt::format("{}: .initial was given. It is of sum, prod, max and min. Leave it out.",
                            current_function(function)));
}
void refuse_choice(const char* function, const ReduceOptions& o) {
  refuse_initial(function, o);
  if (o.where.array)
    throw Error(fmt::format("{}: .where was given. It looks at all elements. Choose them before, by where().",
                            current_function(function)));
}

// sum and prod of integers use at least 32 bits.
template <Reducer r> static Array accumulated(const char* function, const Array& x, const ReduceOptions& o) {
  DType t = o.dtype.value_or(api::weak_type_of(x, function).dtype);
  if (!o.dtype && !is_inexact(t) && itemsize(t) < 4)
    t = is_unsigned_integer(t) ? DType::uint32 : DType::int32;
  if (t == DType::bool_) {
    const Reducer logical = r == Reducer::sum ? Reducer::any : Reducer::all;
    return reduced_as(function, logical, api::to_bool(x, function), o);
  }
  const Array y = primitive::cast(primitive::cast(x, t), api::computed(t));
  return primitive::cast(reduced_as(function, r, y, o), t);
}
template <> constexpr ReduceBody reduce_body<"sum"> = accumulated<Reducer::sum>;
template SHARDARRAY_API Array ReduceFunction<"sum">::operator()(const Array&, const ReduceOptions&,
                                                                Where) const;
template <> constexpr ReduceBody reduce_body<"prod"> = accumulated<Reducer::prod>;
template SHARDARRAY_API Array ReduceFunction<"prod">::operator()(const Array&, const ReduceOptions&,
                                                                 Where) const;

Array inexact(const char* function, const Array& x, const ReduceOptions& o) {
  const DType t = o.dtype.value_or(api::to_inexact(api::weak_type_of(x, function)).dtype);
  if (!is_inexact(t))
    throw DTypeError(fmt::format("{}: dtype {} was asked for. The result is floating. Give a floating dtype.",
                                 current_function(function), name(t)));
  return primitive::cast(x, t);
}
// The sum over the axes, divided by a number.
static Array averaged(const Array& x, const Shape& axes, bool keepdims, double divisor) {
  const Array total = reduced(Reducer::sum, x, axes, keepdims);
  return primitive::div(total, primitive::like(total, divisor));
}
// The sum of the chosen elements divided by their number minus ddof. NaN if that is not positive.
static Array averaged_of(const Array& chosen, const Array& x, const Shape& axes, bool keepdims,
                         std::int64_t ddof) {
  const Array total = reduced(Reducer::sum, only_chosen(chosen, Reducer::sum, x), axes, keepdims);
  const Array count = reduced(Reducer::sum, primitive::cast(chosen, part_type(x.dtype())), axes, keepdims);
  const Array freedom = primitive::sub(count, primitive::like(count, static_cast<double>(ddof)));
  const Array enough = primitive::binary(op_gt, freedom, primitive::like(count, 0));
  const Array divisor = primitive::select(enough, freedom, primitive::like(freedom, 1));
  return primitive::select(enough, primitive::div(total, primitive::cast(divisor, x.dtype())),
                           primitive::like(total, std::numeric_limits<double>::quiet_NaN()));
}
// Over all elements, or the chosen ones.
static Array averaged_where(const Array& chosen, const Array& x, const Shape& axes, bool keepdims,
                            std::int64_t ddof) {
  if (chosen.has_value()) return averaged_of(chosen, x, axes, keepdims, ddof);
  const double freedom = static_cast<double>(count_of(x.shape(), axes)) - static_cast<double>(ddof);
  return averaged(x, axes, keepdims,
                  ddof == 0 || freedom > 0 ? freedom : std::numeric_limits<double>::quiet_NaN());
}
static Array mean_body(const char* function, const Array& x, const ReduceOptions& o) {
  refuse_initial(function, o);
  const Array y = inexact(function, x, o);
  return primitive::cast(
      averaged_where(chosen_elements(function, y, o), primitive::cast(y, api::computed(y.dtype())),
                     reduced_axes(function, x, o), o.keepdims, 0),
      y.dtype());
}
template <> constexpr ReduceBody reduce_body<"mean"> = mean_body;
template SHARDARRAY_API Array ReduceFunction<"mean">::operator()(const Array&, const ReduceOptions&,
                                                                 Where) const;
// The mean squared deviation, in the accumulation dtype.
static Array wide_variance(const char* function, const Array& narrow, const ReduceOptions& o,
                           std::int64_t ddof) {
  refuse_initial(function, o);
  const Array wide = primitive::cast(narrow, api::computed(narrow.dtype()));
  const Array chosen = chosen_elements(function, narrow, o);
  const Shape axes = reduced_axes(function, narrow, o);
  // unchosen elements may be NaN: they must not contribute, also not to the gradient
  const Array centred = only_chosen(
      chosen, Reducer::sum,
      primitive::sub(wide,
                     primitive::broadcast_to(averaged_where(chosen, wide, axes, true, 0), wide.shape())));
  const auto square = [](const Array& x) { return primitive::mul(x, x); };
  const Array distance = is_complex(centred.dtype()) ? primitive::add(square(primitive::real(centred)),
                                                                      square(primitive::imag(centred)))
                                                     : square(centred);
  return averaged_where(chosen, distance, axes, o.keepdims, ddof);
}
static Array var_body(const char* function, const Array& x, const ReduceOptions& o, std::int64_t ddof) {
  const Array y = inexact(function, x, o);
  return primitive::cast(wide_variance(function, y, o, ddof), part_type(y.dtype()));
}
static Array std_body(const char* function, const Array& x, const ReduceOptions& o, std::int64_t ddof) {
  const Array y = inexact(function, x, o);
  return primitive::cast(primitive::unary(op_sqrt, wide_variance(function, y, o, ddof)),
                         part_type(y.dtype()));
}
template <> constexpr SpreadBody spread_body<"var"> = var_body;
template SHARDARRAY_API Array SpreadFunction<"var">::operator()(const Array&, const ReduceOptions&,
                                                                std::int64_t, Where) const;
template <> constexpr SpreadBody spread_body<"std"> = std_body;
template SHARDARRAY_API Array SpreadFunction<"std">::operator()(const Array&, const ReduceOptions&,
                                                                std::int64_t, Where) const;

// ---------------------------------------------------------------- extrema
void need_elements(const char* function, const Array& x, const Shape& axes) {
  if (count_of(x.shape(), axes) == 0)
    throw ShapeError(
        fmt::format("{}: {} has no elements along axes {}. No element has an extremum. Check the size first.",
                    current_function(function), to_string(type_of(x)), to_string(axes)));
}
template <Reducer r, Reducer of_bool>
static Array extremum(const char* function, const Array& x, const ReduceOptions& o) {
  if (!o.initial.array) {
    need_elements(function, x, reduced_axes(function, x, o));
    if (o.where.array)
      throw Error(fmt::format(
          "{}: .where was given, but not .initial. Of no element there is no extremum. Give one of "
          "the dtype, such as the result of nothing.",
          current_function(function)));
  }
  const Array y = primitive::cast(x, o.dtype.value_or(type_of(x, function).dtype));
  return reduced_as(function, y.dtype() == DType::bool_ ? of_bool : r, y, o);
}
template <> constexpr ReduceBody reduce_body<"max"> = extremum<Reducer::max, Reducer::any>;
template SHARDARRAY_API Array ReduceFunction<"max">::operator()(const Array&, const ReduceOptions&,
                                                                Where) const;
template <> constexpr ReduceBody reduce_body<"min"> = extremum<Reducer::min, Reducer::all>;
template SHARDARRAY_API Array ReduceFunction<"min">::operator()(const Array&, const ReduceOptions&,
                                                                Where) const;
template <Reducer r> static Array of_bools(const char* function, const Array& x, const ReduceOptions& o) {
  refuse_initial(function, o);
  return reduced_as(function, r, api::to_bool(x, function), o);
}
template <> constexpr ReduceBody reduce_body<"any"> = of_bools<Reducer::any>;
template <> constexpr ReduceBody reduce_body<"all"> = of_bools<Reducer::all>;
template SHARDARRAY_API Array ReduceFunction<"any">::operator()(const Array&, const ReduceOptions&,
                                                                Where) const;
template SHARDARRAY_API Array ReduceFunction<"all">::operator()(const Array&, const ReduceOptions&,
                                                                Where) const;

// The position of each element among those it is reduced with.
static Array positions(const char* function, const Shape& shape, const Shape& axes) {
  const std::int64_t n = count_of(shape, axes);
  if (n - 1 > std::numeric_limits<std::int32_t>::max())
    throw DTypeError(fmt::format(
        "{}: the positions {} of {} elements do not fit into int32. A position is a value of its dtype. {}.",
        current_function(function), axes.size() > 1 ? "in an array" : "along a dimension", n,
        axes.size() > 1 ? "Look along one axis" : "Reshape so that the dimension is shorter"));
  Array sum;
  std::int64_t step = 1;
  for (std::size_t k = axes.size(); k-- > 0;) {
    const auto d = static_cast<std::size_t>(axes[k]);
    Array along = primitive::iota(shape, d, DType::int32);
    if (step != 1)
      along = primitive::mul(along, primitive::full(shape, DType::int32, static_cast<double>(step)));
    sum = k + 1 == axes.size() ? along : primitive::add(sum, along);
    step *= shape[d];
  }
  return sum;
}

// The first position of the extremum, or of a NaN.
template <Reducer r> static Array position(const char* function, const Array& x, const ReduceOptions& o) {
  refuse_choice(function, o);
  Array y = api::cast(x, api::counted(api::weak_type_of(x, function)));
  if (!o.axis.all && o.axis.axes.size() != 1)
    throw ShapeError(
        fmt::format("{}: axes {}. It takes one axis, or none for the flattened array. Reshape first.",
                    current_function(function), to_string(o.axis.axes)));
  if (y.shape().empty() && o.axis.all) y = primitive::reshape(y, {1});
  const Shape axes = reduced_axes(function, y, o);
  need_elements(function, y, axes);
  const Array best = primitive::broadcast_to(reduced(r, y, axes, true), y.shape());
  Array hit = primitive::binary(op_eq, y, best);
  if (is_inexact(y.dtype())) hit = primitive::binary(op_or, hit, primitive::binary(op_ne, y, y));
  const std::int64_t count = count_of(y.shape(), axes);
  const Array where_hit =
      primitive::select(hit, positions(function, y.shape(), axes),
                        primitive::full(y.shape(), DType::int32, static_cast<double>(count)));
  Array found = reduced(Reducer::min, where_hit, axes, false);
  if (!o.keepdims) return found;
  Shape kept = o.axis.all ? Shape::filled(x.shape().size(), 1) : x.shape();
  if (!o.axis.all) kept[static_cast<std::size_t>(axes[0])] = 1;
  return primitive::reshape(found, kept);
}
template <> constexpr ReduceBody reduce_body<"argmax"> = position<Reducer::max>;
template SHARDARRAY_API Array ReduceFunction<"argmax">::operator()(const Array&, const ReduceOptions&,
                                                                   Where) const;
template <> constexpr ReduceBody reduce_body<"argmin"> = position<Reducer::min>;
template SHARDARRAY_API Array ReduceFunction<"argmin">::operator()(const Array&, const ReduceOptions&,
                                                                   Where) const;

// ---------------------------------------------------------------- exponentials
// For complex numbers the largest real part.
static Array constant_max(const Array& x, const Shape& axes) {
  const Array size = is_complex(x.dtype()) ? primitive::real(x) : x;
  return primitive::unary(op_stop_gradient,
                          primitive::cast(reduced(Reducer::max, size, axes, true), x.dtype()));
}
static Array logsumexp_body(const char* function, const Array& x, const ReduceOptions& o) {
  refuse_initial(function, o);
  const Array narrow = inexact(function, x, o);
  const Array y = only_chosen(chosen_elements(function, narrow, o), Reducer::max,
                              primitive::cast(narrow, api::computed(narrow.dtype())));
  const Shape axes = reduced_axes(function, x, o);
  if (count_of(y.shape(), axes) == 0)  // log(0)
    return primitive::cast(primitive::unary(op_log, reduced(Reducer::sum, y, axes, o.keepdims)),
                           narrow.dtype());
  const Array top = constant_max(y, axes);
  const Array shift = primitive::select(primitive::unary(op_is_finite, top), top, primitive::like(top, 0));
  const Array total = primitive::reduce(
      Reducer::sum, primitive::exp(primitive::sub(y, primitive::broadcast_to(shift, y.shape()))), axes);
  const Array result =
      primitive::add(primitive::unary(op_log, total), primitive::reshape(shift, total.shape()));
  return with_kept(primitive::cast(result, narrow.dtype()), y.shape(), axes, o.keepdims);
}
template <> constexpr ReduceBody reduce_body<"logsumexp"> = logsumexp_body;
template SHARDARRAY_API Array ReduceFunction<"logsumexp">::operator()(const Array&, const ReduceOptions&,
                                                                      Where) const;
static Array logmeanexp_body(const char* function, const Array& x, const ReduceOptions& o) {
  const Array narrow = inexact(function, x, o), y = primitive::cast(narrow, api::computed(narrow.dtype()));
  const Shape axes = reduced_axes(function, x, o);
  ReduceOptions of_wide = o;
  of_wide.dtype.reset();
  const Array total = logsumexp_body(function, y, of_wide), chosen = chosen_elements(function, y, o);
  const Array log_count =
      chosen.has_value()
          ? primitive::unary(op_log,
                             reduced(Reducer::sum, primitive::cast(chosen, total.dtype()), axes, o.keepdims))
          : primitive::like(total, std::log(static_cast<double>(count_of(y.shape(), axes))));
  return primitive::cast(primitive::sub(total, log_count), narrow.dtype());
}
template <> constexpr ReduceBody reduce_body<"logmeanexp"> = logmeanexp_body;
template SHARDARRAY_API Array ReduceFunction<"logmeanexp">::operator()(const Array&, const ReduceOptions&,
                                                                       Where) const;
namespace {
/// x - max(x) along the axes, in the accumulation dtype; -inf where not chosen.
struct Shifted {
  Array values, chosen;
  Shape axes;
  DType result{};  ///< dtype of the result
};
}  // namespace
static Shifted shifted(const char* function, const Array& x, const SoftmaxOptions& o) {
  const Array narrow = inexact(function, x, {});
  Shifted r{{}, chosen_elements(function, narrow, {.where = o.where}), {}, narrow.dtype()};
  const Array y = only_chosen(r.chosen, Reducer::max, primitive::cast(narrow, api::computed(r.result)));
  r.axes = reduced_axes(function, y, {.axis = o.axis});
  r.values =
      y.size() == 0 ? y : primitive::sub(y, primitive::broadcast_to(constant_max(y, r.axes), y.shape()));
  return r;
}
template <>
SHARDARRAY_API Array SoftmaxFunction<"softmax">::operator()(const Array& x, const SoftmaxOptions& o,
                                                            Where w) const {
  const Site site(w, "softmax");
  const Shifted s = shifted("softmax", x, o);
  const Array e = primitive::exp(s.values);
  const Array parts =
      primitive::div(e, primitive::broadcast_to(reduced(Reducer::sum, e, s.axes, true), e.shape()));
  return primitive::cast(only_chosen(s.chosen, Reducer::sum, parts), s.result);
}
template <>
SHARDARRAY_API Array SoftmaxFunction<"log_softmax">::operator()(const Array& x, const SoftmaxOptions& o,
                                                                Where w) const {
  const Site site(w, "log_softmax");
  const Shifted s = shifted("log_softmax", x, o);
  const Array total = primitive::unary(op_log, reduced(Reducer::sum, primitive::exp(s.values), s.axes, true));
  const Array logarithms = primitive::sub(s.values, primitive::broadcast_to(total, s.values.shape()));
  return primitive::cast(only_chosen(s.chosen, Reducer::max, logarithms), s.result);
}
Array one_hot_fn::operator()(const Array& x, std::int64_t n, DType dtype, Where w) const {
  const Site site(w, "one_hot");
  api::need_integers("one_hot", x);
  api::need_real("one_hot", dtype);
  if (n < 0)
    throw ShapeError(fmt::format(
        "one_hot: n is {}. The number of classes is not negative. Give the number of classes.", n));
  const bool fits = itemsize(x.dtype()) >= 4 && primitive::is_value(x.dtype(), n, false);
  const Array y = fits ? x : primitive::cast(x, api::position_type({n}));
  Shape shape = y.shape();
  shape.push_back(1);
  const Array column = primitive::reshape(y, shape);
  shape.back() = n;
  return primitive::cast(primitive::binary(op_eq, primitive::broadcast_to(column, shape),
                                           primitive::iota(shape, shape.size() - 1, y.dtype())),
                         dtype);
}

}  // namespace shardarray
