// real, imag, complex: the three ops that split and join complex arrays, and arithmetic on the parts. Derivatives follow JAX: complex maps
// are transposed without conjugation, so that the gradient of a real loss is dL/dx - i dL/dy.
#include "ops/complex.h"

#include <fmt/core.h>

#include <mutex>

#include "base/complex_parts.h"
#include "graph/trace_state.h"
#include "ops/rules.h"

namespace shardarray {

using namespace rules;

static Types part_types(const Call& c) { return {{c.in[0].shape, part_type(c.in[0].dtype), c.in[0].weak}}; }
static Types pair_types(const Call& c) {
  Type t = same_type(c)[0];
  t.dtype = pair_type(t.dtype);
  return {t};
}
static Array zeros_like_part(const Array& x) {
  const Type& t = type_of(x);
  return primitive::full(t.shape, part_type(t.dtype), 0);
}
static Array part_or_zeros(const Array& t, const Array& x) { return t.has_value() ? t : zeros_like_part(x); }

// Inside a kernel a complex value is two values; these ops only name them.
SHARDARRAY_OP op_real{.name = "real",
                      .form = Form::parts,
                      .rule = pointwise_rule,
                      .type = part_types,
                      .linearity = joint,
                      .transpose =
                          [](const TransposeArgs& t) {
                            const Array& g = t.cotangents[0];
                            return Arrays{primitive::pair(g, zeros_like_part(g))};
                          },
                      .trait = Trait::real_part};
SHARDARRAY_OP op_imag{.name = "imag",
                      .form = Form::parts,
                      .rule = pointwise_rule,
                      .type = part_types,
                      .linearity = joint,
                      .transpose =
                          [](const TransposeArgs& t) {
                            const Array& g = t.cotangents[0];
                            return Arrays{primitive::pair(zeros_like_part(g), primitive::neg(g))};
                          },
                      .trait = Trait::imag_part};
SHARDARRAY_OP op_complex{.name = "complex",
                         .form = Form::parts,
                         .rule = pointwise_rule,
                         .type = pair_types,
                         .linearity = joint,
                         .jvp =
                             [](const JvpArgs& v) {
                               return Arrays{primitive::pair(part_or_zeros(v.tangents[0], v.in[0]),
                                                             part_or_zeros(v.tangents[1], v.in[1]))};
                             },
                         .transpose =
                             [](const TransposeArgs& t) {
                               const Array& g = t.cotangents[0];
                               return Arrays{t.linear[0] ? primitive::real(g) : Array(),
                                             t.linear[1] ? primitive::neg(primitive::imag(g)) : Array()};
                             },
                         .trait = Trait::pair};

// Operand k of a node; absent once the node is evaluated.
static Array operand_of(const Node& n, std::size_t k) {
  const std::lock_guard lock(graph_mutex());
  return n.evaluated() || n.in().size() <= k ? Array() : n.in()[k];
}
Array primitive::number_in(const Array& z) {
  const Node& n = *z.node();
  if (is_literal(n)) return z;
  if (n.op->form != Form::map) return {};
  const Array x = operand_of(n, 0);
  return x.has_value() && is_literal(*x.node()) ? x : Array();
}
static bool is_real_number(const Array& z) { return primitive::number_in(z).has_value(); }
// A part that is known from how z was recorded, as weak as z; a literal part next to a strong one may itself be weak.
static Array known_part(const Array& z, int part) {
  const Type& type = type_of(z);
  if (z.node()->op->trait == Trait::pair) {
    const Array recorded =
        operand_of(*z.node(), static_cast<std::size_t>(part));  // absent once z is evaluated
    return recorded.has_value() ? primitive::cast(recorded, part_type(type.dtype), type.weak) : Array();
  }
  const Array number = primitive::number_in(z);
  if (!number.has_value()) return {};
  const Attrs& a = number.node()->attrs();
  return primitive::broadcast_to(primitive::constant(part_type(a.dtype), part == 0 ? a.bits : 0, type.weak),
                                 z.shape());
}
static Array part_of(const Op& op, const Array& z, int part) {
  if (!is_complex(type_of(z).dtype)) return part == 0 ? z : zeros_of(type_of(z));
  if (Array known = known_part(z, part); known.has_value()) return known;
  return primitive::unary(op, z);
}
Array primitive::real(const Array& z) { return part_of(op_real, z, 0); }
Array primitive::imag(const Array& z) { return part_of(op_imag, z, 1); }
Array primitive::pair(const Array& re, const Array& im) { return binary(op_complex, re, im); }
Array primitive::conj(const Array& z) {
  return is_complex(type_of(z).dtype) ? pair(real(z), neg(imag(z))) : z;
}
Array primitive::mul_real(const Array& z, const Array& by) {
  return is_complex(type_of(z).dtype) ? pair(mul(real(z), by), mul(imag(z), by)) : mul(z, by);
}

// ---------------------------------------------------------------- arithmetic
static Array both(const Array& a, const Array& b) { return primitive::binary(op_and, a, b); }
static Array or_both(const Array& a, const Array& b) { return primitive::binary(op_or, a, b); }

Complex operator+(const Complex& a, const Complex& b) {
  return {primitive::add(a.re, b.re), primitive::add(a.im, b.im)};
}
Complex operator-(const Complex& a, const Complex& b) {
  return {primitive::sub(a.re, b.re), primitive::sub(a.im, b.im)};
}
Complex operator-(const Complex& a) { return {primitive::neg(a.re), primitive::neg(a.im)}; }
Complex operator*(const Complex& a, const Complex& b) {
  return {primitive::sub(primitive::mul(a.re, b.re), primitive::mul(a.im, b.im)),
          primitive::add(primitive::mul(a.re, b.im), primitive::mul(a.im, b.re))};
}
Complex chosen(const Array& condition, const Complex& a, const Complex& b) {
  return {primitive::select(condition, a.re, b.re), primitive::select(condition, a.im, b.im)};
}
Complex times(const Complex& a, double by) {
  const Array number = primitive::like(a.re, by);
  return {primitive::mul(a.re, number), primitive::mul(a.im, number)};
}
// If the imaginary part of b is larger, both operands are multiplied by -i: a single quotient covers both cases, so that derivatives cannot
// get NaN from an unselected branch.
Complex operator/(const Complex& a, const Complex& b) {
  const Array upright =
      primitive::binary(op_ge, primitive::unary(op_abs, b.re), primitive::unary(op_abs, b.im));
  const Complex x = chosen(upright, a, {a.im, primitive::neg(a.re)}),
                y = chosen(upright, b, {b.im, primitive::neg(b.re)});
  const Array is_zero = primitive::binary(op_eq, y.re, primitive::like(y.re, 0)),
              is_bounded = primitive::unary(op_is_finite, y.re);
  // for zero and infinite divisors the smaller part is ignored
  const Array ratio =
      primitive::select(both(is_bounded, primitive::unary(op_not, is_zero)),
                        primitive::div(y.im, primitive::select(is_zero, primitive::like(y.re, 1), y.re)),
                        primitive::like(y.re, 0));
  const Array by = primitive::select(is_bounded, primitive::add(y.re, primitive::mul(y.im, ratio)), y.re);
  return {primitive::div(primitive::add(x.re, primitive::mul(x.im, ratio)), by),
          primitive::div(primitive::sub(x.im, primitive::mul(x.re, ratio)), by)};
}

static Arrays by_real(const Op& op, const Array& z, const Array& number) {
  const Complex parts(z);
  const Array by = primitive::real(number);
  return {primitive::pair(primitive::binary(op, parts.re, by), primitive::binary(op, parts.im, by))};
}
Arrays complex_ops::mul(std::span<const Array> in, const Attrs&) {
  if (is_real_number(in[1])) return by_real(op_mul, in[0], in[1]);
  if (is_real_number(in[0])) return by_real(op_mul, in[1], in[0]);
  return {(Complex(in[0]) * Complex(in[1])).joined()};
}
Arrays complex_ops::div(std::span<const Array> in, const Attrs&) {
  if (is_real_number(in[1])) return by_real(op_div, in[0], in[1]);
  return {(Complex(in[0]) / Complex(in[1])).joined()};
}
Array complex_ops::abs(const Complex& z) {
  const Array zero = primitive::like(z.re, 0);
  const Array origin = both(primitive::binary(op_eq, z.re, zero), primitive::binary(op_eq, z.im, zero));
  const Array size = primitive::binary(op_hypot, primitive::select(origin, primitive::like(z.re, 1), z.re),
                                       primitive::select(origin, zero, z.im));
  return primitive::select(origin, zero, size);
}
Array complex_ops::eq(const Complex& a, const Complex& b) {
  return both(primitive::binary(op_eq, a.re, b.re), primitive::binary(op_eq, a.im, b.im));
}
Array complex_ops::ne(const Complex& a, const Complex& b) {
  return or_both(primitive::binary(op_ne, a.re, b.re), primitive::binary(op_ne, a.im, b.im));
}
static Array in_order(const Op& op, const Complex& a, const Complex& b) {
  return primitive::select(primitive::binary(op_eq, a.re, b.re), primitive::binary(op, a.im, b.im),
                           primitive::binary(op, a.re, b.re));
}
Array complex_ops::lt(const Complex& a, const Complex& b) { return in_order(op_lt, a, b); }
Array complex_ops::le(const Complex& a, const Complex& b) { return in_order(op_le, a, b); }
Array complex_ops::gt(const Complex& a, const Complex& b) { return in_order(op_gt, a, b); }
Array complex_ops::ge(const Complex& a, const Complex& b) { return in_order(op_ge, a, b); }
static Complex extremum(const Op& op, const Complex& a, const Complex& b) {
  return chosen(or_both(in_order(op, a, b), complex_ops::ne(a, a)), a, b);
}
Complex complex_ops::min(const Complex& a, const Complex& b) { return extremum(op_lt, a, b); }
Complex complex_ops::max(const Complex& a, const Complex& b) { return extremum(op_gt, a, b); }
Array complex_ops::is_finite(const Complex& z) {
  return both(primitive::unary(op_is_finite, z.re), primitive::unary(op_is_finite, z.im));
}
Arrays complex_ops::fma(std::span<const Array> in, const Attrs&) {
  return {(Complex(in[0]) * Complex(in[1]) + Complex(in[2])).joined()};
}
// A real result drops the imaginary part; bool tests both.
Arrays complex_ops::cast(std::span<const Array> in, const Attrs& attrs) {
  const Complex z(in[0]);
  const bool weak = !attrs.lo.empty();
  if (attrs.dtype == DType::bool_)
    return {or_both(primitive::cast(z.re, DType::bool_), primitive::cast(z.im, DType::bool_))};
  if (!is_complex(attrs.dtype)) return {primitive::cast(z.re, attrs.dtype, weak)};
  const DType part = part_type(attrs.dtype);
  return {primitive::pair(primitive::cast(z.re, part, weak), primitive::cast(z.im, part, weak))};
}

}  // namespace shardarray
