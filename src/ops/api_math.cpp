// The public elementwise functions: arithmetic and floating functions.
#include <cmath>
#include <numbers>

#include "ops/api.h"
#include "shardarray/math.h"

namespace shardarray {

using api::promoted;
using api::to_inexact;
using api::together;
using api::weak_type_of;

static WeakType bool_to_int32(WeakType t) {
  return t.dtype == DType::bool_ ? WeakType{DType::int32, false} : t;
}

// For bool there is another op.
static Array arithmetic(const char* function, const Op& op, const Op* op_of_bool, const Array& a,
                        const Array& b) {
  if (const Type& s = type_of(a, function), &t = type_of(b, function); s == t && t.dtype != DType::bool_)
    return prim::binary(op, a, b);  // the common case needs nothing
  const WeakType t = promoted(function, {&a, &b});
  if (t.dtype == DType::bool_ && !op_of_bool)
    api::refuse_dtype(function, a, "It takes numbers; of bools use logical_xor");
  const Arrays x = together(function, {&a, &b}, t);
  return prim::binary(t.dtype == DType::bool_ ? *op_of_bool : op, x[0], x[1]);
}
static Array floating(const char* function, const Op& op, const Array& x) {
  return prim::unary(op, api::cast(x, to_inexact(weak_type_of(x, function))));
}

Array add_fn::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w);
  return arithmetic("add", op_add, &op_or, a, b);
}
Array subtract_fn::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w);
  return arithmetic("subtract", op_sub, nullptr, a, b);
}
Array multiply_fn::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w);
  return arithmetic("multiply", op_mul, &op_and, a, b);
}
Array maximum_fn::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w);
  return arithmetic("maximum", op_max, &op_or, a, b);
}
Array minimum_fn::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w);
  return arithmetic("minimum", op_min, &op_and, a, b);
}
Array divide_fn::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w);
  const Arrays x = together("divide", {&a, &b}, to_inexact(promoted("divide", {&a, &b})));
  return prim::div(x[0], x[1]);
}
Array fma_fn::operator()(const Array& a, const Array& b, const Array& c, Where w) const {
  const Site site(w);
  return record(op_fma, together("fma", {&a, &b, &c}, to_inexact(promoted("fma", {&a, &b, &c}))));
}

// ---------------------------------------------------------------- division with remainder
namespace {
struct Division {
  WeakType type;  // of the result; 16-bit floats are divided in float32, so that only the result is rounded
  Arrays x;       // a, b
  Array zero;
  Array rest;     // of the truncated division: has the sign of a
  Array differs;  // the rest is not zero and its sign not that of b
};
}  // namespace
static Division divided(const char* function, const Array& a, const Array& b) {
  api::need_real(function, a);
  api::need_real(function, b);
  Division d;
  d.type = bool_to_int32(promoted(function, {&a, &b}));
  d.x = together(function, {&a, &b}, d.type);
  const WeakType wide = api::computed(d.type);
  for (Array& x : d.x) x = prim::cast(x, wide.dtype, wide.weak);
  d.zero = prim::like(d.x[0], 0);
  d.rest = prim::binary(op_rem, d.x[0], d.x[1]);
  if (is_unsigned_integer(d.rest.dtype())) return d;
  const Array signs =
      prim::binary(op_ne, prim::binary(op_lt, d.rest, d.zero), prim::binary(op_lt, d.x[1], d.zero));
  d.differs = prim::binary(op_and, signs, prim::binary(op_ne, d.rest, d.zero));
  if (is_integer(d.rest.dtype()))
    d.differs = prim::binary(op_and, d.differs, prim::binary(op_ne, d.x[1], d.zero));
  return d;
}
Array floor_divide_fn::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w);
  const Division d = divided("floor_divide", a, b);
  const bool is_float = is_floating(d.rest.dtype());
  Array quotient = prim::div(is_float ? prim::sub(d.x[0], d.rest) : d.x[0], d.x[1]);
  if (!d.differs.has_value()) return quotient;
  Array floored = prim::select(d.differs, prim::sub(quotient, prim::like(quotient, 1)), quotient);
  if (!is_float) return floored;
  // of a / 0 the rest is NaN, the quotient infinite
  return api::cast(prim::select(prim::binary(op_eq, d.x[1], d.zero), prim::div(d.x[0], d.x[1]),
                                prim::unary(op_round, floored)),
                   d.type);
}
Array remainder_fn::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w);
  const Division d = divided("remainder", a, b);
  if (!d.differs.has_value()) return d.rest;
  return api::cast(prim::select(d.differs, prim::add(d.rest, d.x[1]), d.rest), d.type);
}

// ---------------------------------------------------------------- power
// Square and multiply.
static Array integer_power(Array x, std::int64_t exponent) {
  const bool inverted = exponent < 0;
  std::uint64_t n =
      inverted ? 0 - static_cast<std::uint64_t>(exponent) : static_cast<std::uint64_t>(exponent);
  if (n == 0) return one_of(type_of(x));
  Array result;
  for (;; x = prim::mul(x, x)) {
    if (n & 1) result = result.has_value() ? prim::mul(result, x) : x;
    n >>= 1;
    if (n == 0) break;
  }
  return inverted ? prim::div(prim::like(result, 1), result) : result;
}
Array power_fn::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w);
  const WeakType base = weak_type_of(a, "power"), exponent = weak_type_of(b, "power");
  std::int64_t n = 0;
  if (prim::is_literal_int(b, n)) {
    if (n < 0 && !is_inexact(base.dtype))
      api::refuse_dtype("power", a, "Integers cannot be raised to negative powers");
    return integer_power(api::cast(a, bool_to_int32(base)), n);
  }
  WeakType t = bool_to_int32(promote_types(base, exponent));
  // a weak base takes a strong exponent's strength, unless the exponent is only bool
  if (base.weak && !exponent.weak && (is_integer(exponent.dtype) || is_integer(base.dtype))) t.weak = false;
  const Arrays x = together("power", {&a, &b}, t);
  return prim::binary(op_pow, x[0], x[1]);
}

// ---------------------------------------------------------------- one operand
Array negative_fn::operator()(const Array& x, Where w) const {
  const Site site(w);
  if (weak_type_of(x, "negative").dtype == DType::bool_)
    api::refuse_dtype("negative", x, "It takes numbers; of bools use logical_not");
  return prim::neg(x);
}
Array abs_fn::operator()(const Array& x, Where w) const {
  const Site site(w);
  const DType t = weak_type_of(x, "abs").dtype;
  return t == DType::bool_ || is_unsigned_integer(t) ? x : prim::unary(op_abs, x);
}
Array sign_fn::operator()(const Array& x, Where w) const {
  const Site site(w);
  if (weak_type_of(x, "sign").dtype == DType::bool_) api::refuse_dtype("sign", x, "It takes numbers");
  return prim::unary(op_sign, x);
}
Array square_fn::operator()(const Array& x, Where w) const {
  const Site site(w);
  const Array y = api::cast(x, bool_to_int32(weak_type_of(x, "square")));
  return prim::mul(y, y);
}
Array reciprocal_fn::operator()(const Array& x, Where w) const {
  const Site site(w);
  const Array y = api::cast(x, to_inexact(weak_type_of(x, "reciprocal")));
  return prim::div(prim::like(y, 1), y);
}
static Array whole(const char* function, const Op& op, const Array& x) {
  api::need_real(function, x);
  return is_floating(x.dtype()) ? prim::unary(op, x) : x;
}
Array floor_fn::operator()(const Array& x, Where w) const {
  const Site site(w);
  return whole("floor", op_floor, x);
}
Array ceil_fn::operator()(const Array& x, Where w) const {
  const Site site(w);
  return whole("ceil", op_ceil, x);
}
Array trunc_fn::operator()(const Array& x, Where w) const {
  const Site site(w);
  return whole("trunc", op_trunc, x);
}
Array round_fn::operator()(const Array& x, int decimals, Where w) const {
  const Site site(w);
  if (weak_type_of(x, "round").dtype == DType::bool_) api::refuse_dtype("round", x, "It takes numbers");
  if (decimals == 0 || !is_floating(x.dtype())) return whole("round", op_round, x);
  const WeakType t = weak_type_of(x, "round");
  const Array y = api::cast(x, api::computed(t)), factor = prim::like(y, std::pow(10.0, decimals));
  return api::cast(prim::div(prim::unary(op_round, prim::mul(y, factor)), factor), t);
}
Array clip_fn::operator()(const Array& x, const Array& lo, const Array& hi, Where w) const {
  const Site site(w);
  return minimum(hi, maximum(lo, x));
}
Array clamp_fn::operator()(const Array& lo, const Array& x, const Array& hi, Where w) const {
  const Site site(w);
  const WeakType t = weak_type_of(x, "clamp");
  return minimum(maximum(x, api::cast(lo, t)), api::cast(hi, t));
}

// ---------------------------------------------------------------- floating functions
Array exp_fn::operator()(const Array& x, Where w) const {
  const Site site(w);
  return floating("exp", op_exp, x);
}
Array expm1_fn::operator()(const Array& x, Where w) const {
  const Site site(w);
  return floating("expm1", op_expm1, x);
}
Array log_fn::operator()(const Array& x, Where w) const {
  const Site site(w);
  return floating("log", op_log, x);
}
Array log1p_fn::operator()(const Array& x, Where w) const {
  const Site site(w);
  return floating("log1p", op_log1p, x);
}
Array sqrt_fn::operator()(const Array& x, Where w) const {
  const Site site(w);
  return floating("sqrt", op_sqrt, x);
}
Array rsqrt_fn::operator()(const Array& x, Where w) const {
  const Site site(w);
  return floating("rsqrt", op_rsqrt, x);
}
Array sin_fn::operator()(const Array& x, Where w) const {
  const Site site(w);
  return floating("sin", op_sin, x);
}
Array cos_fn::operator()(const Array& x, Where w) const {
  const Site site(w);
  return floating("cos", op_cos, x);
}
Array tan_fn::operator()(const Array& x, Where w) const {
  const Site site(w);
  return floating("tan", op_tan, x);
}
Array sinh_fn::operator()(const Array& x, Where w) const {
  const Site site(w);
  return floating("sinh", op_sinh, x);
}
Array cosh_fn::operator()(const Array& x, Where w) const {
  const Site site(w);
  return floating("cosh", op_cosh, x);
}
Array tanh_fn::operator()(const Array& x, Where w) const {
  const Site site(w);
  return floating("tanh", op_tanh, x);
}
Array arcsin_fn::operator()(const Array& x, Where w) const {
  const Site site(w);
  return floating("arcsin", op_asin, x);
}
Array arccos_fn::operator()(const Array& x, Where w) const {
  const Site site(w);
  return floating("arccos", op_acos, x);
}
Array arctan_fn::operator()(const Array& x, Where w) const {
  const Site site(w);
  return floating("arctan", op_atan, x);
}
Array arctan2_fn::operator()(const Array& y, const Array& x, Where w) const {
  const Site site(w);
  const Arrays v = together("arctan2", {&y, &x}, to_inexact(promoted("arctan2", {&y, &x})));
  return prim::binary(op_atan2, v[0], v[1]);
}
Array erf_fn::operator()(const Array& x, Where w) const {
  const Site site(w);
  return floating("erf", op_erf, x);
}
Array erfc_fn::operator()(const Array& x, Where w) const {
  const Site site(w);
  return floating("erfc", op_erfc, x);
}
Array erf_inv_fn::operator()(const Array& x, Where w) const {
  const Site site(w);
  return floating("erf_inv", op_erf_inv, x);
}
Array sigmoid_fn::operator()(const Array& x, Where w) const {
  const Site site(w);
  return floating("sigmoid", op_logistic, x);
}
Array relu_fn::operator()(const Array& x, Where w) const {
  const Site site(w);
  return prim::unary(op_relu, api::cast(x, bool_to_int32(weak_type_of(x, "relu"))));
}
Array silu_fn::operator()(const Array& x, Where w) const {
  const Site site(w);
  const Array y = api::cast(x, to_inexact(weak_type_of(x, "silu")));
  return prim::mul(y, prim::unary(op_logistic, y));
}
// Exactly: 0.5 x erfc(-x / sqrt(2)); 1 + erf would cancel. Else 0.5 (1 + tanh u) = sigmoid(2u), u = sqrt(2 / pi) (x + 0.044715 x^3).
Array gelu_fn::operator()(const Array& x, bool approximate, Where w) const {
  const Site site(w);
  const WeakType t = to_inexact(weak_type_of(x, "gelu"));
  auto times = [](const Array& a, double v) { return prim::mul(a, prim::like(a, v)); };
  if (!approximate) {
    const Array y = api::cast(x, api::computed(t));
    return api::cast(prim::mul(times(y, 0.5), prim::unary(op_erfc, times(y, -std::numbers::sqrt2 / 2))), t);
  }
  const Array y = api::cast(x, t);
  const Array cubic = prim::add(y, times(prim::mul(y, prim::mul(y, y)), 0.044715));
  return prim::mul(y, prim::unary(op_logistic, times(cubic, 2 * std::sqrt(2 / std::numbers::pi))));
}

}  // namespace shardarray
