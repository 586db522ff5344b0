// Reductions and running reductions that ignore NaN.
#include <limits>

#include "graph/trace_state.h"
#include "ops/reducing.h"
#include "shardarray/statistics.h"

namespace shardarray {

static bool has_nan(const Array& x, const char* function) { return is_inexact(type_of(x, function).dtype); }
static Array is_number(const Array& x) { return primitive::binary(op_eq, x, x); }
// x with NaN replaced by the identity of r.
static Array without_nan(const char* function, const Array& x, Reducer r) {
  return has_nan(x, function) ? only_chosen(is_number(x), r, x) : x;
}
static ReduceOptions of_bool_result(const ReduceOptions& o) {
  return {.axis = o.axis, .keepdims = o.keepdims};
}

static Array nansum_body(const char* function, const Array& x, const ReduceOptions& o) {
  return sum(without_nan(function, x, Reducer::sum), o);
}
template <>
SHARDARRAY_API Array ReduceFunction<"nansum">::operator()(const Array& x, const ReduceOptions& o,
                                                          Where w) const {
  const Site site(w, "nansum");
  return nansum_body("nansum", x, o);
}
static Array nanprod_body(const char* function, const Array& x, const ReduceOptions& o) {
  return prod(without_nan(function, x, Reducer::prod), o);
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
  const Array y = without_nan(function, x, is_max ? Reducer::max : Reducer::min);
  Array best = is_max ? max(y, o) : min(y, o);
  if (o.initial.array || !has_nan(x, function) || !is_inexact(best.dtype())) return best;
  return primitive::select(any(is_number(x), of_bool_result(o)), best,
                           primitive::like(best, std::numeric_limits<double>::quiet_NaN()));
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
  refuse_choice(function, o);
  const Array y = without_nan(function, x, is_max ? Reducer::max : Reducer::min);
  Array at = is_max ? argmax(y, o) : argmin(y, o);
  if (!has_nan(x, function)) return at;
  return primitive::select(any(is_number(x), of_bool_result(o)), at, primitive::like_whole(at, -1));
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
// `o` restricted to elements that are not NaN.
static ReduceOptions of_numbers(const char* function, const Array& x, ReduceOptions o) {
  if (!has_nan(x, function)) return o;
  const Array chosen = chosen_elements(function, x, o);
  o.where = chosen.has_value() ? primitive::binary(op_and, is_number(x), chosen) : is_number(x);
  return o;
}
template <>
SHARDARRAY_API Array ReduceFunction<"nanmean">::operator()(const Array& x, const ReduceOptions& o,
                                                           Where w) const {
  const Site site(w, "nanmean");
  return mean(x, of_numbers("nanmean", x, o));
}
template <>
SHARDARRAY_API Array SpreadFunction<"nanvar">::operator()(const Array& x, const ReduceOptions& o,
                                                          std::int64_t ddof, Where w) const {
  const Site site(w, "nanvar");
  return var(x, of_numbers("nanvar", x, o), ddof);
}
template <>
SHARDARRAY_API Array SpreadFunction<"nanstd">::operator()(const Array& x, const ReduceOptions& o,
                                                          std::int64_t ddof, Where w) const {
  const Site site(w, "nanstd");
  return shardarray::std(x, of_numbers("nanstd", x, o), ddof);
}

// ---------------------------------------------------------------- running reductions
static Array nancumsum_body(const char* function, const Array& x, const CumulativeOptions& o) {
  return cumsum(without_nan(function, x, Reducer::sum), o);
}
template <>
SHARDARRAY_API Array CumulativeFunction<"nancumsum">::operator()(const Array& x, const CumulativeOptions& o,
                                                                 Where w) const {
  const Site site(w, "nancumsum");
  return nancumsum_body("nancumsum", x, o);
}
static Array nancumprod_body(const char* function, const Array& x, const CumulativeOptions& o) {
  return cumprod(without_nan(function, x, Reducer::prod), o);
}
template <>
SHARDARRAY_API Array CumulativeFunction<"nancumprod">::operator()(const Array& x, const CumulativeOptions& o,
                                                                  Where w) const {
  const Site site(w, "nancumprod");
  return nancumprod_body("nancumprod", x, o);
}

// log(exp(a) + exp(b)). Equal infinities split the derivative, like other equal values.
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
// Each element combines with those 1, 2, 4, ... before it, so that each sum of exponentials is scaled by its own maximum.
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
  return primitive::cast(y, narrow.dtype(), !o.dtype && api::weak_type_of(x, function).weak);
}
template <>
SHARDARRAY_API Array CumulativeFunction<"cumlogsumexp">::operator()(const Array& x,
                                                                    const CumulativeOptions& o,
                                                                    Where w) const {
  const Site site(w, "cumlogsumexp");
  return cumlogsumexp_body("cumlogsumexp", x, o);
}

}  // namespace shardarray
