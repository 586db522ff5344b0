// Comparisons, bits, selection.
#include <fmt/core.h>

#include <limits>

#include "ops/function.h"
#include "ops/rules.h"

namespace shardarray {

using namespace rules;

// The common type of two operands that are integers or bool.
static WeakType integer_type(const char* function, const Array& a, const Array& b) {
  api::need_integers(function, a);
  api::need_integers(function, b);
  const WeakType t = api::promoted(function, {&a, &b});
  if (is_floating(t.dtype))
    throw DTypeError(fmt::format(
        "{}: the operands {} and {} promote to {}. It takes integers and bool. Cast one with astype.",
        function, to_string(type_of(a)), to_string(type_of(b)), name(t.dtype)));
  return t;
}
template <const Op& op> static Array bits(const char* function, const Array& a, const Array& b) {
  const Arrays x = api::together(function, {&a, &b}, integer_type(function, a, b));
  return primitive::binary(op, x[0], x[1]);
}
template <const Op& op> static Array shifted(const char* function, const Array& a, const Array& b) {
  WeakType t = integer_type(function, a, b);
  if (t.dtype == DType::bool_) t = {DType::int32, false};
  const Arrays x = api::together(function, {&a, &b}, t);
  return primitive::binary(op, x[0], x[1]);
}
template <const Op& op> static Array logical(const char* function, const Array& a, const Array& b) {
  const Array p = api::to_bool(a, function), q = api::to_bool(b, function);
  const Arrays x = api::together(function, {&p, &q}, {DType::bool_, false});
  return primitive::binary(op, x[0], x[1]);
}

template <Code code> static constexpr Op comparison(const char* op_name) {
  return elementwise({.name = op_name, .type = bool_type, .jvp = no_tangent, .scalar = emit_binary<code>});
}
template <Code code> static constexpr Op bitwise(const char* op_name) {
  return elementwise({.name = op_name, .type = same_type, .jvp = no_tangent, .scalar = emit_binary<code>});
}

SHARDARRAY_OP op_eq = comparison<Code::eq>("eq");
template <> constexpr BinaryBody binary_body<"equal"> = promoting<op_eq>;
template SHARDARRAY_API Array BinaryFunction<"equal">::operator()(const Array&, const Array&, Where) const;

SHARDARRAY_OP op_ne = comparison<Code::ne>("ne");
template <> constexpr BinaryBody binary_body<"not_equal"> = promoting<op_ne>;
template SHARDARRAY_API Array BinaryFunction<"not_equal">::operator()(const Array&, const Array&,
                                                                      Where) const;

SHARDARRAY_OP op_lt = comparison<Code::lt>("lt");
template <> constexpr BinaryBody binary_body<"less"> = promoting<op_lt>;
template SHARDARRAY_API Array BinaryFunction<"less">::operator()(const Array&, const Array&, Where) const;

SHARDARRAY_OP op_le = comparison<Code::le>("le");
template <> constexpr BinaryBody binary_body<"less_equal"> = promoting<op_le>;
template SHARDARRAY_API Array BinaryFunction<"less_equal">::operator()(const Array&, const Array&,
                                                                       Where) const;

SHARDARRAY_OP op_gt = comparison<Code::gt>("gt");
template <> constexpr BinaryBody binary_body<"greater"> = promoting<op_gt>;
template SHARDARRAY_API Array BinaryFunction<"greater">::operator()(const Array&, const Array&, Where) const;

SHARDARRAY_OP op_ge = comparison<Code::ge>("ge");
template <> constexpr BinaryBody binary_body<"greater_equal"> = promoting<op_ge>;
template SHARDARRAY_API Array BinaryFunction<"greater_equal">::operator()(const Array&, const Array&,
                                                                          Where) const;

SHARDARRAY_OP op_and = bitwise<Code::and_>("and");
template <> constexpr BinaryBody binary_body<"logical_and"> = logical<op_and>;
template SHARDARRAY_API Array BinaryFunction<"logical_and">::operator()(const Array&, const Array&,
                                                                        Where) const;
template <> constexpr BinaryBody binary_body<"bitwise_and"> = bits<op_and>;
template SHARDARRAY_API Array BinaryFunction<"bitwise_and">::operator()(const Array&, const Array&,
                                                                        Where) const;

SHARDARRAY_OP op_or = bitwise<Code::or_>("or");
template <> constexpr BinaryBody binary_body<"logical_or"> = logical<op_or>;
template SHARDARRAY_API Array BinaryFunction<"logical_or">::operator()(const Array&, const Array&,
                                                                       Where) const;
template <> constexpr BinaryBody binary_body<"bitwise_or"> = bits<op_or>;
template SHARDARRAY_API Array BinaryFunction<"bitwise_or">::operator()(const Array&, const Array&,
                                                                       Where) const;

SHARDARRAY_OP op_xor = bitwise<Code::xor_>("xor");
template <> constexpr BinaryBody binary_body<"logical_xor"> = logical<op_xor>;
template SHARDARRAY_API Array BinaryFunction<"logical_xor">::operator()(const Array&, const Array&,
                                                                        Where) const;
template <>
constexpr BinaryBody binary_body<"bitwise_xor"> = [](const char* function, const Array& a, const Array& b) {
  for (const Array* const x : {&a, &b})
    if (is_floating(type_of(*x, function).dtype))
      api::refuse_dtype(function, *x, "It takes integers and bool; x to the power y is pow(x, y)");
  return bits<op_xor>(function, a, b);
};
template SHARDARRAY_API Array BinaryFunction<"bitwise_xor">::operator()(const Array&, const Array&,
                                                                        Where) const;

SHARDARRAY_OP op_shl = bitwise<Code::shl>("shl");
template <> constexpr BinaryBody binary_body<"left_shift"> = shifted<op_shl>;
template SHARDARRAY_API Array BinaryFunction<"left_shift">::operator()(const Array&, const Array&,
                                                                       Where) const;

SHARDARRAY_OP op_shr = bitwise<Code::shr>("shr");
template <> constexpr BinaryBody binary_body<"right_shift"> = shifted<op_shr>;
template SHARDARRAY_API Array BinaryFunction<"right_shift">::operator()(const Array&, const Array&,
                                                                        Where) const;

SHARDARRAY_OP op_not = elementwise({.name = "not", .jvp = no_tangent, .scalar = emit_unary<Code::not_>});
template <>
constexpr UnaryBody unary_body<"logical_not"> =
    [](const char* function, const Array& x) { return primitive::unary(op_not, api::to_bool(x, function)); };
template SHARDARRAY_API Array UnaryFunction<"logical_not">::operator()(const Array&, Where) const;
template <>
constexpr UnaryBody unary_body<"bitwise_not"> = [](const char* function, const Array& x) {
  api::need_integers(function, x);
  return primitive::unary(op_not, x);
};
template SHARDARRAY_API Array UnaryFunction<"bitwise_not">::operator()(const Array&, Where) const;

SHARDARRAY_OP op_is_finite =
    elementwise({.name = "is_finite", .type = bool_type, .jvp = no_tangent, .scalar = [](ScalarArgs& s) {
                   const int limit = s.b.constant(s.b.type(s.in[0]), std::numeric_limits<double>::infinity());
                   s.out[0] = s.b.binary(Code::lt, s.b.unary(Code::abs, s.in[0]), limit);
                 }});
template <>
constexpr UnaryBody unary_body<"isfinite"> = [](const char* function, const Array& x) {
  if (!is_floating(api::weak_type_of(x, function).dtype)) return one_of({x.shape(), DType::bool_, false});
  return primitive::unary(op_is_finite, x);
};
template SHARDARRAY_API Array UnaryFunction<"isfinite">::operator()(const Array&, Where) const;
template <>
constexpr UnaryBody unary_body<"isinf"> = [](const char* function, const Array& x) {
  if (!is_floating(api::weak_type_of(x, function).dtype)) return zeros_of({x.shape(), DType::bool_, false});
  return primitive::binary(op_eq, primitive::unary(op_abs, x),
                           primitive::like(x, std::numeric_limits<double>::infinity()));
};
template SHARDARRAY_API Array UnaryFunction<"isinf">::operator()(const Array&, Where) const;
template <>
constexpr UnaryBody unary_body<"isnan"> =
    [](const char* function, const Array& x) { return promoting<op_ne>(function, x, x); };
template SHARDARRAY_API Array UnaryFunction<"isnan">::operator()(const Array&, Where) const;

static Types where_type(const Call& c) {
  if (c.in[0].dtype != DType::bool_ || !(c.in[0].shape == c.in[1].shape))
    throw InternalError(fmt::format("where: condition {} for values {}. It must be bool and of their shape.",
                                    to_string(c.in[0]), to_string(c.in[1])));
  return same_type({c.op, c.in.subspan(1), {}, c.attrs});
}
static Array or_zeros(const Array& t, const Array& x) { return t.has_value() ? t : zeros_of(type_of(x)); }

// Condition, a, b.
SHARDARRAY_OP op_where = elementwise(
    {.name = "where",
     .type = where_type,
     .linearity = [](const Call&, int operand) { return operand == 0 ? Linear::no : Linear::joint; },
     .jvp =
         [](const JvpArgs& v) {
           const auto& t = v.tangents;
           if (!t[1].has_value() && !t[2].has_value()) return no_tangent(v);
           return Arrays{primitive::select(v.in[0], or_zeros(t[1], v.in[1]), or_zeros(t[2], v.in[2]))};
         },
     .transpose =
         [](const TransposeArgs& t) {
           const Array &g = t.cotangents[0], zero = zeros_of(type_of(g));
           return Arrays{Array(), t.linear[1] ? primitive::select(t.in[0], g, zero) : Array(),
                         t.linear[2] ? primitive::select(t.in[0], zero, g) : Array()};
         },
     .scalar = [](ScalarArgs& s) { s.out[0] = s.b.select(s.in[0], s.in[1], s.in[2]); }});
Array where_fn::operator()(const Array& condition, const Array& a, const Array& b, Where w) const {
  const Site site(w, "where");
  const WeakType t = api::promoted("where", {&a, &b});
  const Array c = api::to_bool(condition, "where");
  const Shape shapes[] = {c.shape(), a.shape(), b.shape()};
  const Shape shape = api::common_shape("where", shapes);
  return primitive::select(primitive::broadcast_to(c, shape), primitive::broadcast_to(api::cast(a, t), shape),
                           primitive::broadcast_to(api::cast(b, t), shape));
}

}  // namespace shardarray
