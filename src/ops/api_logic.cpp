// The public elementwise functions: comparisons, logic, bits, selection, casts.
#include <fmt/core.h>

#include <limits>

#include "ops/api.h"
#include "shardarray/math.h"

namespace shardarray {

using api::promoted;
using api::together;
using api::weak_type_of;

static Array compared(const char* function, const Op& op, const Array& a, const Array& b) {
  const Arrays x = together(function, {&a, &b}, promoted(function, {&a, &b}));
  return prim::binary(op, x[0], x[1]);
}
// The common type of two operands that are integers or bool.
static WeakType integer_type(const char* function, const Array& a, const Array& b) {
  api::need_integers(function, a);
  api::need_integers(function, b);
  const WeakType t = promoted(function, {&a, &b});
  if (is_floating(t.dtype))
    throw DTypeError(fmt::format(
        "{}: the operands {} and {} promote to {}. It takes integers and bool. Cast one with astype.",
        function, to_string(type_of(a)), to_string(type_of(b)), name(t.dtype)));
  return t;
}
static Array bits(const char* function, const Op& op, const Array& a, const Array& b) {
  const Arrays x = together(function, {&a, &b}, integer_type(function, a, b));
  return prim::binary(op, x[0], x[1]);
}
static Array shifted(const char* function, const Op& op, const Array& a, const Array& b) {
  WeakType t = integer_type(function, a, b);
  if (t.dtype == DType::bool_) t = {DType::int32, false};
  const Arrays x = together(function, {&a, &b}, t);
  return prim::binary(op, x[0], x[1]);
}
static Array logical(const char* function, const Op& op, const Array& a, const Array& b) {
  const Array p = api::to_bool(a, function), q = api::to_bool(b, function);
  const Arrays x = together(function, {&p, &q}, {DType::bool_, false});
  return prim::binary(op, x[0], x[1]);
}

Array equal_fn::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w);
  return compared("equal", op_eq, a, b);
}
Array not_equal_fn::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w);
  return compared("not_equal", op_ne, a, b);
}
Array less_fn::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w);
  return compared("less", op_lt, a, b);
}
Array less_equal_fn::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w);
  return compared("less_equal", op_le, a, b);
}
Array greater_fn::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w);
  return compared("greater", op_gt, a, b);
}
Array greater_equal_fn::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w);
  return compared("greater_equal", op_ge, a, b);
}
Array isnan_fn::operator()(const Array& x, Where w) const {
  const Site site(w);
  return compared("isnan", op_ne, x, x);
}
Array isinf_fn::operator()(const Array& x, Where w) const {
  const Site site(w);
  if (!is_floating(weak_type_of(x, "isinf").dtype)) return zeros_of({x.shape(), DType::bool_, false});
  return prim::binary(op_eq, prim::unary(op_abs, x), prim::like(x, std::numeric_limits<double>::infinity()));
}
Array isfinite_fn::operator()(const Array& x, Where w) const {
  const Site site(w);
  if (!is_floating(weak_type_of(x, "isfinite").dtype)) return one_of({x.shape(), DType::bool_, false});
  return prim::unary(op_is_finite, x);
}
Array logical_and_fn::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w);
  return logical("logical_and", op_and, a, b);
}
Array logical_or_fn::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w);
  return logical("logical_or", op_or, a, b);
}
Array logical_xor_fn::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w);
  return logical("logical_xor", op_xor, a, b);
}
Array logical_not_fn::operator()(const Array& x, Where w) const {
  const Site site(w);
  return prim::unary(op_not, api::to_bool(x, "logical_not"));
}
Array bitwise_and_fn::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w);
  return bits("bitwise_and", op_and, a, b);
}
Array bitwise_or_fn::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w);
  return bits("bitwise_or", op_or, a, b);
}
Array bitwise_xor_fn::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w);
  return bits("bitwise_xor", op_xor, a, b);
}
Array bitwise_not_fn::operator()(const Array& x, Where w) const {
  const Site site(w);
  api::need_integers("bitwise_not", x);
  return prim::unary(op_not, x);
}
Array left_shift_fn::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w);
  return shifted("left_shift", op_shl, a, b);
}
Array right_shift_fn::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w);
  return shifted("right_shift", op_shr, a, b);
}
Array where_fn::operator()(const Array& condition, const Array& a, const Array& b, Where w) const {
  const Site site(w, "where");
  const WeakType t = promoted("where", {&a, &b});
  const Array c = api::to_bool(condition, "where");
  const Shape shapes[] = {c.shape(), a.shape(), b.shape()};
  const Shape shape = api::common_shape("where", shapes);
  return prim::select(prim::broadcast_to(c, shape), prim::broadcast_to(api::cast(a, t), shape),
                      prim::broadcast_to(api::cast(b, t), shape));
}
Array astype_fn::operator()(const Array& x, DType t, Where w) const {
  const Site site(w, "astype");
  type_of(x, "astype");
  api::need_real("astype", t);
  return prim::cast(x, t);
}
Array bitcast_fn::operator()(const Array& x, DType t, Where w) const {
  const Site site(w, "bitcast");
  api::need_real("bitcast", t);
  Attrs a;
  a.dtype = t;
  return record(op_bitcast, {x}, std::move(a));
}
Array stop_gradient(const Array& x, Where w) {
  const Site site(w);
  return prim::unary(op_stop_gradient, x);
}

}  // namespace shardarray
