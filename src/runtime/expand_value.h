// Notation for expansions: builder values with operators, and the choice between the forms of two widths.
#pragma once
#include <initializer_list>
#include <limits>

#include "runtime/expand.h"

namespace shardarray::expand {

/// A builder value with operators; numbers become constants of the other operand's type.
struct V {
  KernelBuilder* b;
  int id;
  V of(double x) const { return {b, b->constant(b->type(id), x)}; }
};
inline V unary(Code c, V x) { return {x.b, x.b->unary(c, x.id)}; }
inline V binary(Code c, V x, V y) { return {x.b, x.b->binary(c, x.id, y.id)}; }
inline V operator+(V x, V y) { return binary(Code::add, x, y); }
inline V operator-(V x, V y) { return binary(Code::sub, x, y); }
inline V operator*(V x, V y) { return binary(Code::mul, x, y); }
inline V operator/(V x, V y) { return binary(Code::div, x, y); }
inline V operator&(V x, V y) { return binary(Code::and_, x, y); }
inline V operator|(V x, V y) { return binary(Code::or_, x, y); }
inline V operator^(V x, V y) { return binary(Code::xor_, x, y); }
inline V operator<<(V x, V y) { return binary(Code::shl, x, y); }
inline V operator>>(V x, V y) { return binary(Code::shr, x, y); }
inline V operator<(V x, V y) { return binary(Code::lt, x, y); }
inline V operator>(V x, V y) { return binary(Code::gt, x, y); }
inline V operator==(V x, V y) { return binary(Code::eq, x, y); }
inline V operator!=(V x, V y) { return binary(Code::ne, x, y); }
inline V operator+(V x, double y) { return x + x.of(y); }
inline V operator-(V x, double y) { return x - x.of(y); }
inline V operator-(double x, V y) { return y.of(x) - y; }
inline V operator*(V x, double y) { return x * x.of(y); }
inline V operator/(double x, V y) { return y.of(x) / y; }
inline V operator&(V x, double y) { return x & x.of(y); }
inline V operator<<(V x, double y) { return x << x.of(y); }
inline V operator>>(V x, double y) { return x >> x.of(y); }
inline V operator<(V x, double y) { return x < x.of(y); }
inline V operator>(V x, double y) { return x > x.of(y); }
inline V operator==(V x, double y) { return x == x.of(y); }
inline V operator-(V x) { return unary(Code::neg, x); }
inline V abs(V x) { return unary(Code::abs, x); }
inline V trunc(V x) { return unary(Code::trunc, x); }
inline V sqrt(V x) { return unary(Code::sqrt, x); }
inline V max(V x, V y) { return binary(Code::max, x, y); }
inline V fma(V x, V y, V z) { return {x.b, x.b->fma(x.id, y.id, z.id)}; }
inline V fma(V x, V y, double z) { return fma(x, y, x.of(z)); }
inline V fma(V x, double y, V z) { return fma(x, x.of(y), z); }
inline V select(V c, V x, V y) { return {c.b, c.b->select(c.id, x.id, y.id)}; }
inline V cast(V x, DType t) { return {x.b, x.b->cast(x.id, t)}; }
inline V bits(V x, DType t) { return {x.b, x.b->bitcast(x.id, t)}; }
inline V word(V x, std::uint64_t w) { return {x.b, x.b->constant_bits(x.b->type(x.id), w)}; }

inline V call(Function f, V x) { return {x.b, x.b->call(f, x.id)}; }
inline V call(Function f, V x, double y) { return {x.b, x.b->call(f, x.id, x.of(y).id)}; }

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Highest coefficient first; one fma per coefficient.
inline V polynomial(V x, std::initializer_list<double> c) {
  V p = x.of(*c.begin());
  for (auto i = c.begin() + 1; i != c.end(); ++i) p = fma(p, x, *i);
  return p;
}
/// `x` (>= 0) with the sign of `sign`, a float32 or float64.
inline V with_sign(V x, V sign) {
  const DType t = x.b->type(x.id), word_type = t == float64 ? uint64 : uint32;
  const V s = bits(sign, word_type), one = word(s, t == float64 ? 0x8000000000000000u : 0x80000000u);
  return bits(bits(x, word_type) | (s & one), t);
}
/// y for finite x > 0; otherwise the logarithm's special values.
inline V log_special(V x, V y) {
  return select(x > 0, select(x < infinity, y, x), select(x == 0, x.of(-infinity), x.of(nan)));
}
/// Clamps; NaN stays. One instruction each, where min and max take several.
inline V at_most(V x, double bound) { return select(x > bound, x.of(bound), x); }
inline V at_least(V x, double bound) { return select(x < bound, x.of(bound), x); }

/// sinh(x) and cosh(x) from y = (exp(|x|) - 1) / 4; sinh(x) is x below `tiny`.
inline V sinh_from(V x, V y, double tiny) {
  const V a = abs(x), s = fma(y, 2, (y / (y + 0.25)) * 0.5);
  return with_sign(select(a < tiny, a, s), x);
}
inline V cosh_from(V y) {
  const V e = y + 0.25;
  return fma(e, 2, 0.125 / e);
}

/// Of float64, in expand_double.cpp.
V exp64(V x);
V expm1_64(V x);
V sinh64(V x);
V cosh64(V x);
V tanh64(V x);
/// log2(a) in float64 for a float32 a > 0, and 2^t for t in -1000 .. 1000, both to about 40 bits; in expand_powers.cpp.
V log2_wide(V a);
V exp2_wide(V t);

/// Throws InternalError: elementary functions take only float32 and float64.
[[noreturn]] void refuse_width(const char* function, DType t);
[[noreturn]] void refuse_widths(const char* function, DType t, DType u);
/// Applies the form for x's width.
inline int by_width(KernelBuilder& b, const char* function, V (*f32)(V), V (*f64)(V), int x) {
  if (b.type(x) == float64) return f64({&b, x}).id;
  if (b.type(x) != float32) refuse_width(function, b.type(x));
  return f32({&b, x}).id;
}
inline int expand_unary(KernelBuilder& b, Function f64, V (*f32)(V), int x) {
  if (b.type(x) == float64) return b.call(f64, x);
  if (b.type(x) != float32) refuse_width(name(f64), b.type(x));
  return f32({&b, x}).id;
}
inline int expand_binary(KernelBuilder& b, Function f64, V (*f32)(V, V), int x, int y) {
  if (b.type(x) == float64 && b.type(y) == float64) return b.call(f64, x, y);
  if (b.type(x) != float32 || b.type(y) != float32) refuse_widths(name(f64), b.type(x), b.type(y));
  return f32({&b, x}, {&b, y}).id;
}

}  // namespace shardarray::expand
