// Reductions of what is not NaN, and running ones.
#include <limits>

#include "graph/trace_state.h"
#include "ops/reducing.h"
#include "shardarray/statistics.h"

namespace shardarray {

static bool has_nan(const Array& x, const char* function) { return is_floating(type_of(x, function).dtype); }
static Array nan_mask(const Array& x) { return primitive::binary(op_ne, x, x); }
// x with a number in place of NaN.
static Array without_nan(const char* function, const Array& x, double instead) {
  return has_nan(x, function) ? primitive::select(nan_mask(x), primitive::like(x, instead), x) : x;
}
static ReduceOptions of_bool_result(const ReduceOptions& o) {
  return {.axis = o.axis, .keepdims = o.keepdims};
}

static Array nansum_body(const char* function, const Array& x, const ReduceOptions& o) {
  return sum(without_nan(function, x, 0), o);
}
template <>
SHARDARRAY_API Array ReduceFunction<"nansum">::operator()(const Array& x, const ReduceOptions& o,
                                                          Where w) const {
  const Site site(w, "nansum");
  return nansum_body("nansum", x, o);
}
static Array nanprod_body(const char* function, const Array& x, const ReduceOptions& o) {
  return prod(without_nan(function, x, 1), o);
}
template <>
SHARDARRAY_API Array ReduceFunction<"nanprod">::operator()(const Array& x, const ReduceOptions& o,
                                                           Where w) const {
  const Site site(w, "nanprod");
  return nanprod_body("nanprod", x, o);
}

// ---------------------------------------------------------------- extrema
template <bool is_max>
static Array nan_extremum(const char* function, const Array& x, const ReduceOptions& o) {
  constexpr double last =
      is_max ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  const Array y = without_nan(function, x, last);
  Array best = is_max ? max(y, o) : min(y, o);
  if (o.initial.array || !has_nan(x, function) || !is_floating(best.dtype())) return best;
  return primitive::select(all(nan_mask(x), of_bool_result(o)),
                           primitive::like(best, std::numeric_limits<double>::quiet_NaN()), best);
}
template <>
SHARDARRAY_API Array ReduceFunction<"nanmax">::operator()(const Array& x, const ReduceOptions& o,
                                                          Where w) const {
  const Site site(w, "nanmax");
  return nan_extremum<true>("nanmax", x, o);
}
template <>
SHARDARRAY_API Array ReduceFunction<"nanmin">::operator()(const Array& x, const ReduceOptions& o,
                                                          Where w) const {
  const Site site(w, "nanmin");
  return nan_extremum<false>("nanmin", x, o);
}
template <bool is_max>
static Array nan_position(const char* function, const Array& x, const ReduceOptions& o) {
  constexpr double last =
      is_max ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  refuse_choice(function, o);
  const Array y = without_nan(function, x, last);
  Array at = is_max ? argmax(y, o) : argmin(y, o);
  if (!has_nan(x, function)) return at;
  return primitive::select(all(nan_mask(x), of_bool_result(o)), primitive::like_whole(at, -1), at);
}
template <>
SHARDARRAY_API Array ReduceFunction<"nanargmax">::operator()(const Array& x, const ReduceOptions& o,
                                                             Where w) const {
  const Site site(w, "nanargmax");
  return nan_position<true>("nanargmax", x, o);
}
template <>
SHARDARRAY_API Array ReduceFunction<"nanargmin">::operator()(const Array& x, const ReduceOptions& o,
                                                             Where w) const {
  const Site site(w, "nanargmin");
  return nan_position<false>("nanargmin", x, o);
}

// ---------------------------------------------------------------- moments
// Which elements are no NaN, of the chosen ones.
static Array present(const char* function, const Array& x, const ReduceOptions& o) {
  refuse_initial(function, o);
  const Array numbers = primitive::binary(op_eq, x, x), chosen = chosen_elements(function, x, o);
  return chosen.has_value() ? primitive::binary(op_and, numbers, chosen) : numbers;
}
static Array nanmean_body(const char* function, const Array& x, const ReduceOptions& o) {
  const Array y = inexact(function, x, o), wide = primitive::cast(y, api::computed(y.dtype()));
  return primitive::cast(
      averaged_of(present(function, y, o), wide, reduced_axes(function, x, o), o.keepdims, 0), y.dtype());
}
template <>
SHARDARRAY_API Array ReduceFunction<"nanmean">::operator()(const Array& x, const ReduceOptions& o,
                                                           Where w) const {
  const Site site(w, "nanmean");
  return nanmean_body("nanmean", x, o);
}
static Array wide_nanvar(const char* function, const Array& y, const ReduceOptions& o, std::int64_t ddof) {
  const Array counted = present(function, y, o),
              wide = primitive::cast(without_nan(function, y, 0), api::computed(y.dtype()));
  const Shape axes = reduced_axes(function, y, o);
  const Array mid = averaged_of(counted, wide, axes, true, 0);
  const Array centred = primitive::sub(wide, primitive::broadcast_to(mid, wide.shape()));
  return averaged_of(counted, primitive::mul(centred, centred), axes, o.keepdims, ddof);
}
static Array nanvar_body(const char* function, const Array& x, const ReduceOptions& o, std::int64_t ddof) {
  const Array y = inexact(function, x, o);
  return primitive::cast(wide_nanvar(function, y, o, ddof), y.dtype());
}
template <>
SHARDARRAY_API Array SpreadFunction<"nanvar">::operator()(const Array& x, const ReduceOptions& o,
                                                          std::int64_t ddof, Where w) const {
  const Site site(w, "nanvar");
  return nanvar_body("nanvar", x, o, ddof);
}
static Array nanstd_body(const char* function, const Array& x, const ReduceOptions& o, std::int64_t ddof) {
  const Array y = inexact(function, x, o);
  return primitive::cast(primitive::unary(op_sqrt, wide_nanvar(function, y, o, ddof)), y.dtype());
}
template <>
SHARDARRAY_API Array SpreadFunction<"nanstd">::operator()(const Array& x, const ReduceOptions& o,
                                                          std::int64_t ddof, Where w) const {
  const Site site(w, "nanstd");
  return nanstd_body("nanstd", x, o, ddof);
}

// ---------------------------------------------------------------- running
static Array nancumsum_body(const char* function, const Array& x, const CumulativeOptions& o) {
  return cumsum(without_nan(function, x, 0), o);
}
template <>
SHARDARRAY_API Array CumulativeFunction<"nancumsum">::operator()(const Array& x, const CumulativeOptions& o,
                                                                 Where w) const {
  const Site site(w, "nancumsum");
  return nancumsum_body("nancumsum", x, o);
}
static Array nancumprod_body(const char* function, const Array& x, const CumulativeOptions& o) {
  return cumprod(without_nan(function, x, 1), o);
}
template <>
SHARDARRAY_API Array CumulativeFunction<"nancumprod">::operator()(const Array& x, const CumulativeOptions& o,
                                                                  Where w) const {
  const Site site(w, "nancumprod");
  return nancumprod_body("nancumprod", x, o);
}

// log(exp(a) + exp(b)). Equal infinities share the derivative, as other equal ones do.
static Array log_of_two(const Array& a, const Array& b) {
  const Array larger = primitive::binary(op_max, a, b), zero = primitive::like(a, 0);
  const Array equal = primitive::binary(op_eq, a, b);
  const Array infinite = primitive::binary(op_eq, primitive::unary(op_abs, larger),
                                           primitive::like(a, std::numeric_limits<double>::infinity()));
  const Array no_sum = primitive::binary(op_and, equal, infinite);
  const Array sum =
      primitive::binary(op_logaddexp, primitive::select(no_sum, zero, a), primitive::select(no_sum, zero, b));
  return primitive::select(no_sum, larger, sum);
}
// Every element takes up its neighbours 1, 2, 4, .. before it: each sum of exponentials has its own largest element.
static Array cumlogsumexp_body(const char* function, const Array& x, const CumulativeOptions& o) {
  const Array narrow = inexact(function, x, {.dtype = o.dtype});
  Array y = primitive::cast(narrow, api::computed(narrow.dtype()));
  if (!o.axis) y = primitive::reshape(y, {y.size()});
  const Shape shape = y.shape();
  const std::size_t dim = api::axis_of(function, o.axis.value_or(0), shape);
  const std::int64_t n = shape[dim];
  const std::uint64_t nothing = primitive::bits_of(y.dtype(), -std::numeric_limits<double>::infinity());
  for (std::int64_t by = 1; by < n; by *= 2) {
    Shape before = Shape::filled(shape.size(), 0), behind = before;
    (o.reverse ? behind : before)[dim] = by;
    const Array part =
        o.reverse ? primitive::slice_dim(y, dim, by, n) : primitive::slice_dim(y, dim, 0, n - by);
    y = log_of_two(y, primitive::pad(part, before, behind, nothing));
  }
  return primitive::cast(y, narrow.dtype());
}
template <>
SHARDARRAY_API Array CumulativeFunction<"cumlogsumexp">::operator()(const Array& x,
                                                                    const CumulativeOptions& o,
                                                                    Where w) const {
  const Site site(w, "cumlogsumexp");
  return cumlogsumexp_body("cumlogsumexp", x, o);
}

}  // namespace shardarray
