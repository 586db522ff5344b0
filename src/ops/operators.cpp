// ShardedArray's literals, operators and shorthands; functions of operands.
#include <bit>
#include <limits>

#include "ops/complex.h"
#include "ops/record.h"
#include "shardarray/ops.h"

namespace shardarray {

// ---------------------------------------------------------------- literals
Array ShardedArray::literal(double value, DType t, bool weak, Where w) {
  Attrs a;
  a.dtype = t;
  a.bits = primitive::bits_of(t, value);
  if (weak) a.dims = {1};
  if (weak && is_floating(t)) a.hi = {std::bit_cast<std::int64_t>(value)};  // for a float64 partner
  return record(op_constant, {}, std::move(a), w);
}
Array ShardedArray::literal_complex(std::complex<double> value, Where w) {
  const Site site(w);
  return primitive::pair(literal(value.real(), DType::float32, true, w),
                         literal(value.imag(), DType::float32, true, w));
}
// A value that does not fit into int32 becomes a weak int64 or uint64.
Array ShardedArray::literal_int(std::int64_t value, Where w) {
  const Site site(w);
  using Limits = std::numeric_limits<std::int32_t>;
  const DType t = value < Limits::min() || value > Limits::max() ? DType::int64 : DType::int32;
  return primitive::constant(t, primitive::bits_of(t, value), true);
}

Array ShardedArray::literal_uint(std::uint64_t value, Where w) {
  if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return literal_int(static_cast<std::int64_t>(value), w);
  const Site site(w);
  return primitive::constant(DType::uint64, value, true);
}

// ---------------------------------------------------------------- operators
Array Operand::value() const {
  return std::visit(
      [&](auto v) {
        if constexpr (std::is_same_v<decltype(v), std::monostate>) return array;
        else return Array(v, where);
      },
      number);
}

namespace {

// Converts the number x directly to the dtype that promotion with `partner` gives; keeps a literal where that depends on the rules or
// throws.
Array beside(const Operand& x, const Array& partner) {
  const Type& t = type_of(partner);
  const auto taken = [&](auto v) -> Array {
    const Site site(x.where);
    return primitive::constant(t.dtype, primitive::bits_of(t.dtype, v), true);
  };
  if (t.weak || is_complex(t.dtype)) return x.value();
  if (const auto* real = std::get_if<double>(&x.number); real && is_floating(t.dtype)) return taken(*real);
  if (const auto* whole = std::get_if<std::int64_t>(&x.number);
      whole && (is_floating(t.dtype) || (is_integer(t.dtype) && primitive::is_value(t.dtype, *whole, false))))
    return taken(*whole);
  return x.value();
}

template <class F> Array apply(const F& f, const Operand& a, const Operand& b) {
  const bool is_a = a.array.has_value(), is_b = b.array.has_value();
  if (is_a && is_b) return f(a.array, b.array, a.where);
  if (is_a && b.number.index() > 0) return f(a.array, beside(b, a.array), a.where);
  if (is_b && a.number.index() > 0) return f(beside(a, b.array), b.array, a.where);
  return f(a.value(), b.value(), a.where);
}

}  // namespace

Array operator+(const Operand& a, const Operand& b) { return apply(add, a, b); }
Array operator-(const Operand& a, const Operand& b) { return apply(subtract, a, b); }
Array operator*(const Operand& a, const Operand& b) { return apply(multiply, a, b); }
Array operator/(const Operand& a, const Operand& b) { return apply(divide, a, b); }
Array operator%(const Operand& a, const Operand& b) { return apply(BinaryFunction<"remainder">{}, a, b); }
Array operator-(const Operand& a) { return negative(a.value(), a.where); }
Array operator~(const Operand& a) { return bitwise_not(a.value(), a.where); }
Array operator!(const Array& a) {
  return logical_not(a, a.has_value() ? a.node()->where : detail::RecordedLine());
}
Array operator&(const Operand& a, const Operand& b) { return apply(bitwise_and, a, b); }
Array operator|(const Operand& a, const Operand& b) { return apply(bitwise_or, a, b); }
Array operator^(const Operand& a, const Operand& b) { return apply(bitwise_xor, a, b); }
Array operator<<(const Operand& a, const Operand& b) { return apply(left_shift, a, b); }
Array operator>>(const Operand& a, const Operand& b) { return apply(right_shift, a, b); }
Array operator==(const Operand& a, const Operand& b) { return apply(equal, a, b); }
Array operator!=(const Operand& a, const Operand& b) { return apply(not_equal, a, b); }
Array operator<(const Operand& a, const Operand& b) { return apply(less, a, b); }
Array operator<=(const Operand& a, const Operand& b) { return apply(less_equal, a, b); }
Array operator>(const Operand& a, const Operand& b) { return apply(greater, a, b); }
Array operator>=(const Operand& a, const Operand& b) { return apply(greater_equal, a, b); }

// ---------------------------------------------------------------- functions whose names C also has
// Forward to the function objects, with the line of the first operand.
template <detail::FixedString name> static Array named_function(const Operand& x) {
  return UnaryFunction<name>{}(x.value(), x.where);
}
template <detail::FixedString name> static Array named_function(const Operand& a, const Operand& b) {
  return BinaryFunction<name>{}(a.value(), b.value(), a.where);
}

Array abs(const Operand& x) { return named_function<"abs">(x); }
Array floor(const Operand& x) { return named_function<"floor">(x); }
Array ceil(const Operand& x) { return named_function<"ceil">(x); }
Array trunc(const Operand& x) { return named_function<"trunc">(x); }
Array exp(const Operand& x) { return named_function<"exp">(x); }
Array expm1(const Operand& x) { return named_function<"expm1">(x); }
Array log(const Operand& x) { return named_function<"log">(x); }
Array log1p(const Operand& x) { return named_function<"log1p">(x); }
Array sqrt(const Operand& x) { return named_function<"sqrt">(x); }
Array sin(const Operand& x) { return named_function<"sin">(x); }
Array cos(const Operand& x) { return named_function<"cos">(x); }
Array tan(const Operand& x) { return named_function<"tan">(x); }
Array sinh(const Operand& x) { return named_function<"sinh">(x); }
Array cosh(const Operand& x) { return named_function<"cosh">(x); }
Array tanh(const Operand& x) { return named_function<"tanh">(x); }
Array asin(const Operand& x) { return named_function<"arcsin">(x); }
Array acos(const Operand& x) { return named_function<"arccos">(x); }
Array atan(const Operand& x) { return named_function<"arctan">(x); }
Array exp2(const Operand& x) { return named_function<"exp2">(x); }
Array log2(const Operand& x) { return named_function<"log2">(x); }
Array log10(const Operand& x) { return named_function<"log10">(x); }
Array cbrt(const Operand& x) { return named_function<"cbrt">(x); }
Array asinh(const Operand& x) { return named_function<"arcsinh">(x); }
Array acosh(const Operand& x) { return named_function<"arccosh">(x); }
Array atanh(const Operand& x) { return named_function<"arctanh">(x); }
Array rint(const Operand& x) { return named_function<"rint">(x); }
Array signbit(const Operand& x) { return named_function<"signbit">(x); }
Array gamma(const Operand& x) { return named_function<"gamma">(x); }
Array lgamma(const Operand& x) { return named_function<"lgamma">(x); }
Array erf(const Operand& x) { return named_function<"erf">(x); }
Array erfc(const Operand& x) { return named_function<"erfc">(x); }
Array isnan(const Operand& x) { return named_function<"isnan">(x); }
Array isinf(const Operand& x) { return named_function<"isinf">(x); }
Array isfinite(const Operand& x) { return named_function<"isfinite">(x); }
Array pow(const Operand& a, const Operand& b) { return named_function<"power">(a, b); }
Array atan2(const Operand& y, const Operand& x) { return named_function<"arctan2">(y, x); }
Array fmod(const Operand& a, const Operand& b) { return named_function<"fmod">(a, b); }
Array fmax(const Operand& a, const Operand& b) { return named_function<"fmax">(a, b); }
Array fmin(const Operand& a, const Operand& b) { return named_function<"fmin">(a, b); }
Array hypot(const Operand& a, const Operand& b) { return named_function<"hypot">(a, b); }
Array copysign(const Operand& a, const Operand& b) { return named_function<"copysign">(a, b); }
Array nextafter(const Operand& a, const Operand& b) { return named_function<"nextafter">(a, b); }
Array remainder(const Operand& a, const Operand& b) { return a % b; }

// ---------------------------------------------------------------- shorthands
Array ShardedArray::astype(DType t, Where w) const { return shardarray::astype(*this, t, w); }
Array ShardedArray::reshape(const Shape& s, Where w) const { return shardarray::reshape(*this, s, w); }
Array ShardedArray::transpose(const Shape& perm, Where w) const {
  return shardarray::transpose(*this, perm, w);
}
Array ShardedArray::sum(const ReduceOptions& o, Where w) const { return shardarray::sum(*this, o, w); }
Array ShardedArray::mean(const ReduceOptions& o, Where w) const { return shardarray::mean(*this, o, w); }
Array ShardedArray::max(const ReduceOptions& o, Where w) const { return shardarray::max(*this, o, w); }
Array ShardedArray::min(const ReduceOptions& o, Where w) const { return shardarray::min(*this, o, w); }
Array ShardedArray::prod(const ReduceOptions& o, Where w) const { return shardarray::prod(*this, o, w); }
Array ShardedArray::any(const ReduceOptions& o, Where w) const { return shardarray::any(*this, o, w); }
Array ShardedArray::all(const ReduceOptions& o, Where w) const { return shardarray::all(*this, o, w); }

}  // namespace shardarray
