// Comparisons, bit operations, selection.
#include <fmt/core.h>

#include <limits>

#include "ops/complex.h"
#include "ops/function.h"
#include "ops/rules.h"

namespace shardarray {

using namespace rules;

// The common type of two integer or bool operands.
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
static DType unsigned_of(DType t) {
  switch (itemsize(t)) {
    case 1: return DType::uint8;
    case 2: return DType::uint16;
    case 4: return DType::uint32;
    default: return DType::uint64;
  }
}
template <const Op& op> static Array bits(const char* function, const Array& a, const Array& b) {
  const Arrays x = api::together(function, {&a, &b}, integer_type(function, a, b));
  return primitive::binary(op, x[0], x[1]);
}
template <const Op& op> static Array shifted(const char* function, const Array& a, const Array& b) {
  const Arrays x = api::together(function, {&a, &b}, api::counted(integer_type(function, a, b)));
  return primitive::binary(op, x[0], x[1]);
}
template <const Op& op> static Array logical(const char* function, const Array& a, const Array& b) {
  const Array p = api::to_bool(a, function), q = api::to_bool(b, function);
  const Arrays x = api::together(function, {&p, &q}, {DType::bool_, false});
  return primitive::binary(op, x[0], x[1]);
}

template <Code code, Array (*of_complex)(const Complex&, const Complex&)>
static constexpr Op comparison(const char* op_name) {
  return elementwise({.name = op_name,
                      .type = bool_type,
                      .jvp = no_tangent,
                      .scalar = emit_binary<code>,
                      .on_parts = complex_ops::real_of_two<of_complex>});
}
template <Code code> static constexpr Op bitwise(const char* op_name) {
  return elementwise({.name = op_name, .type = same_type, .jvp = no_tangent, .scalar = emit_binary<code>});
}

SHARDARRAY_OP op_eq = comparison<Code::eq, complex_ops::eq>("eq");
template <> constexpr BinaryBody binary_body<"equal"> = promoting<op_eq>;
template SHARDARRAY_API Array BinaryFunction<"equal">::operator()(const Array&, const Array&, Where) const;

SHARDARRAY_OP op_ne = comparison<Code::ne, complex_ops::ne>("ne");
template <> constexpr BinaryBody binary_body<"not_equal"> = promoting<op_ne>;
template SHARDARRAY_API Array BinaryFunction<"not_equal">::operator()(const Array&, const Array&,
                                                                      Where) const;

SHARDARRAY_OP op_lt = comparison<Code::lt, complex_ops::lt>("lt");
template <> constexpr BinaryBody binary_body<"less"> = promoting<op_lt>;
template SHARDARRAY_API Array BinaryFunction<"less">::operator()(const Array&, const Array&, Where) const;

SHARDARRAY_OP op_le = comparison<Code::le, complex_ops::le>("le");
template <> constexpr BinaryBody binary_body<"less_equal"> = promoting<op_le>;
template SHARDARRAY_API Array BinaryFunction<"less_equal">::operator()(const Array&, const Array&,
                                                                       Where) const;

SHARDARRAY_OP op_gt = comparison<Code::gt, complex_ops::gt>("gt");
template <> constexpr BinaryBody binary_body<"greater"> = promoting<op_gt>;
template SHARDARRAY_API Array BinaryFunction<"greater">::operator()(const Array&, const Array&, Where) const;

SHARDARRAY_OP op_ge = comparison<Code::ge, complex_ops::ge>("ge");
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

// ---------------------------------------------------------------- counting
// Population count of an unsigned v: sums of 1, 2 and 4 bits in parallel, then of bytes by a multiplication (Warren, "Hacker's Delight",
// 5-1).
static int emit_ones(KernelBuilder& b, int v) {
  const DType t = b.type(v);
  const auto width = static_cast<int>(8 * itemsize(t));
  const auto number = [&](std::uint64_t bits) {
    return b.constant_bits(t, width == 64 ? bits : bits & ((std::uint64_t{1} << width) - 1));
  };
  const auto both = [&](int x, int by, std::uint64_t mask) {
    return b.binary(
        Code::add, b.binary(Code::and_, x, number(mask)),
        b.binary(Code::and_, b.binary(Code::shr, x, number(static_cast<std::uint64_t>(by))), number(mask)));
  };
  v = both(both(both(v, 1, 0x5555555555555555u), 2, 0x3333333333333333u), 4, 0x0f0f0f0f0f0f0f0fu);
  if (width == 8) return v;
  return b.binary(Code::shr, b.binary(Code::mul, v, number(0x0101010101010101u)),
                  number(static_cast<std::uint64_t>(width - 8)));
}
// Applies f to the bits as unsigned integers.
template <int (*f)(KernelBuilder&, int)> static void emit_of_bits(ScalarArgs& s) {
  const DType t = s.b.type(s.in[0]), word = unsigned_of(t);
  const int r = f(s.b, word == t ? s.in[0] : s.b.bitcast(s.in[0], word));
  s.out[0] = word == t ? r : s.b.bitcast(r, t);
}
// Sets all bits below the highest one; the remaining zeros are the leading ones.
static int emit_leading_zeros(KernelBuilder& b, int v) {
  const DType t = b.type(v);
  const auto width = static_cast<int>(8 * itemsize(t));
  for (int by = 1; by < width; by *= 2) v = b.binary(Code::or_, v, b.binary(Code::shr, v, b.constant(t, by)));
  return b.binary(Code::sub, b.constant(t, width), emit_ones(b, v));
}
// Euclid's algorithm, two steps per iteration: x % 0 is x here, so (gcd, 0) and (0, gcd) are fixed points. Enough steps for consecutive
// Fibonacci numbers of this width.
static void emit_gcd(ScalarArgs& s) {
  KernelBuilder& b = s.b;
  const DType t = b.type(s.in[0]);
  const bool has_sign = is_signed_integer(t);
  int x = has_sign ? b.unary(Code::abs, s.in[0]) : s.in[0],
      y = has_sign ? b.unary(Code::abs, s.in[1]) : s.in[1];
  const int steps = static_cast<int>(8 * itemsize(t)) * 3 / 4 + 2;  // 1.44 per bit
  for (int k = 0; k < steps; k++) {
    x = b.binary(Code::rem, x, y);
    y = b.binary(Code::rem, y, x);
  }
  const int r = b.binary(Code::or_, x, y);
  s.out[0] = has_sign ? b.unary(Code::abs, r) : r;
}

static WeakType numbers_type(const char* function, const Array& a, const Array& b) {
  const WeakType t = integer_type(function, a, b);
  if (t.dtype == DType::bool_) api::refuse_dtype(function, a, "It takes integers");
  return t;
}
SHARDARRAY_OP op_gcd = elementwise({.name = "gcd", .type = same_type, .jvp = no_tangent, .scalar = emit_gcd});
template <>
constexpr BinaryBody binary_body<"gcd"> = [](const char* function, const Array& a, const Array& b) {
  const Arrays x = api::together(function, {&a, &b}, numbers_type(function, a, b));
  return primitive::binary(op_gcd, x[0], x[1]);
};
template SHARDARRAY_API Array BinaryFunction<"gcd">::operator()(const Array&, const Array&, Where) const;
// |a| (|b| / gcd), which wraps as in JAX; for two zeros gcd is 0, and the result 0 * -1.
template <>
constexpr BinaryBody binary_body<"lcm"> = [](const char* function, const Array& a, const Array& b) {
  const Arrays x = api::together(function, {&a, &b}, numbers_type(function, a, b));
  const auto size = [](const Array& v) {
    return is_signed_integer(v.dtype()) ? primitive::unary(op_abs, v) : v;
  };
  return primitive::mul(size(x[0]), primitive::div(size(x[1]), primitive::binary(op_gcd, x[0], x[1])));
};
template SHARDARRAY_API Array BinaryFunction<"lcm">::operator()(const Array&, const Array&, Where) const;

SHARDARRAY_OP op_population_count =
    elementwise({.name = "population_count", .jvp = no_tangent, .scalar = emit_of_bits<emit_ones>});
static void need_numbers(const char* function, const Array& x) {
  api::need_integers(function, x);
  if (x.dtype() == DType::bool_) api::refuse_dtype(function, x, "It takes integers");
}
template <>
constexpr UnaryBody unary_body<"population_count"> = [](const char* function, const Array& x) {
  need_numbers(function, x);
  return primitive::unary(op_population_count, x);
};
template SHARDARRAY_API Array UnaryFunction<"population_count">::operator()(const Array&, Where) const;
template <>
constexpr UnaryBody unary_body<"bitwise_count"> = [](const char* function, const Array& x) {
  api::need_integers(function, x);
  if (x.dtype() == DType::bool_) return primitive::cast(x, DType::uint8);
  const Array size = is_signed_integer(x.dtype()) ? primitive::unary(op_abs, x) : x;
  return primitive::cast(primitive::unary(op_population_count, size), DType::uint8);
};
template SHARDARRAY_API Array UnaryFunction<"bitwise_count">::operator()(const Array&, Where) const;

SHARDARRAY_OP op_clz =
    elementwise({.name = "clz", .jvp = no_tangent, .scalar = emit_of_bits<emit_leading_zeros>});
template <>
constexpr UnaryBody unary_body<"clz"> = [](const char* function, const Array& x) {
  need_numbers(function, x);
  return primitive::unary(op_clz, x);
};
template SHARDARRAY_API Array UnaryFunction<"clz">::operator()(const Array&, Where) const;

// ---------------------------------------------------------------- classification, selection
SHARDARRAY_OP op_is_finite =
    elementwise({.name = "is_finite",
                 .type = bool_type,
                 .jvp = no_tangent,
                 .scalar =
                     [](ScalarArgs& s) {
                       const int limit =
                           s.b.constant(s.b.type(s.in[0]), std::numeric_limits<double>::infinity());
                       s.out[0] = s.b.binary(Code::lt, s.b.unary(Code::abs, s.in[0]), limit);
                     },
                 .on_parts = complex_ops::real_of_one<complex_ops::is_finite>});
template <>
constexpr UnaryBody unary_body<"isfinite"> = [](const char* function, const Array& x) {
  if (!is_inexact(api::weak_type_of(x, function).dtype)) return one_of({x.shape(), DType::bool_, false});
  return primitive::unary(op_is_finite, x);
};
template SHARDARRAY_API Array UnaryFunction<"isfinite">::operator()(const Array&, Where) const;
template <>
constexpr UnaryBody unary_body<"isinf"> = [](const char* function, const Array& x) {
  if (!is_inexact(api::weak_type_of(x, function).dtype)) return zeros_of({x.shape(), DType::bool_, false});
  const Array size = primitive::unary(op_abs, x);
  return primitive::binary(op_eq, size, primitive::like(size, std::numeric_limits<double>::infinity()));
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

// Operands: condition, a, b.
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
     .scalar = [](ScalarArgs& s) { s.out[0] = s.b.select(s.in[0], s.in[1], s.in[2]); },
     .on_parts = complex_ops::each_part<op_where>});
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
