#include "ops/record.h"

#include <fmt/core.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/complex_parts.h"
#include "base/sizes.h"
#include "graph/trace_state.h"
#include "ops/complex.h"
#include "ops/rules.h"

namespace shardarray {

using rules::from_last;

// ---------------------------------------------------------------- constants
// IEEE binary formats shorter than float, rounded to nearest even.
static std::uint64_t small_float_bits(double v, int mantissa, int exponent) {
  const std::uint64_t sign = std::signbit(v) ? std::uint64_t{1} << (mantissa + exponent) : 0;
  const std::uint64_t infinity = ((std::uint64_t{1} << exponent) - 1) << mantissa;
  if (std::isnan(v)) return infinity | std::uint64_t{1} << (mantissa - 1);
  if (std::isinf(v)) return sign | infinity;
  const int bias = (1 << (exponent - 1)) - 1;
  int e = 0;
  std::frexp(v, &e);
  const int normal = std::max(e - 1, 1 - bias);  // exponent of the unit bit; at least the smallest normal's
  const auto n = static_cast<std::uint64_t>(std::nearbyint(std::ldexp(std::abs(v), mantissa - normal)));
  const std::uint64_t magnitude = (static_cast<std::uint64_t>(normal + bias - 1) << mantissa) + n;
  return sign | (v == 0 ? 0 : std::min(magnitude, infinity));
}

static std::uint64_t low_bytes(DType t, std::uint64_t v) {
  const std::size_t bits = itemsize(t) * 8;
  return bits >= 64 ? v : v & ((std::uint64_t{1} << bits) - 1);
}

static std::uint64_t saturated(DType t, double v) {
  if (std::isnan(v)) return 0;
  const int bits = static_cast<int>(itemsize(t)) * 8;
  if (is_unsigned_integer(t)) {
    if (v <= 0) return 0;
    return v >= std::ldexp(1.0, bits) ? low_bytes(t, ~std::uint64_t{0}) : static_cast<std::uint64_t>(v);
  }
  const double limit = std::ldexp(1.0, bits - 1);
  if (v >= limit) return (std::uint64_t{1} << (bits - 1)) - 1;
  if (v <= -limit) return std::uint64_t{1} << (bits - 1);
  return low_bytes(t, static_cast<std::uint64_t>(static_cast<std::int64_t>(v)));
}

std::uint64_t primitive::bits_of(DType t, double v) {
  switch (t) {
    case DType::bool_: return v != 0;
    case DType::float16: return small_float_bits(v, 10, 5);
    case DType::bfloat16: return small_float_bits(v, 7, 8);
    case DType::float32:
    case DType::complex64: return std::bit_cast<std::uint32_t>(static_cast<float>(v));
    case DType::float64:
    case DType::complex128: return std::bit_cast<std::uint64_t>(v);
    default: return saturated(t, v);
  }
}

// v rounded to odd, representable in float64 (last kept bit set if inexact), so that rounding to 16 bits is correct.
static double to_odd_double(std::uint64_t v) {
  constexpr std::uint64_t low = (1 << 11) - 1;
  if (v >> 53 != 0 && (v & low) != 0) v = (v & ~low) | (low + 1);
  return static_cast<double>(v);
}

// From sign and magnitude, rounded once.
static std::uint64_t float_bits(DType t, bool is_negative, std::uint64_t magnitude) {
  const auto bits = [&](auto v) { return primitive::bits_of(t, static_cast<double>(is_negative ? -v : v)); };
  if (t == DType::float16 || t == DType::bfloat16) return bits(to_odd_double(magnitude));
  return t == DType::float32 ? bits(static_cast<float>(magnitude)) : bits(static_cast<double>(magnitude));
}

std::uint64_t primitive::bits_of(DType t, std::int64_t v) {
  const auto word = static_cast<std::uint64_t>(v);
  return is_integer(t) ? low_bytes(t, word) : float_bits(t, v < 0, v < 0 ? 0 - word : word);
}

std::uint64_t primitive::bits_of(DType t, std::uint64_t v) {
  return is_integer(t) ? low_bytes(t, v) : float_bits(t, false, v);
}

// Filled in place: literals and broadcasts are recorded by the million.
static std::shared_ptr<Attrs> fresh_attrs() { return std::allocate_shared<Attrs>(BlockAllocator<Attrs>()); }

Array primitive::constant(DType t, std::uint64_t bits, bool weak) {
  auto a = fresh_attrs();
  a->dtype = t;
  a->bits = low_bytes(t, bits);
  if (weak) a->dims = {1};
  return record_one(op_constant, {}, std::move(a));
}

static std::int64_t sign_extended(DType t, std::uint64_t bits) {
  const int unused = 64 - static_cast<int>(itemsize(t)) * 8;
  const std::uint64_t high = bits << unused;
  return is_signed_integer(t) ? static_cast<std::int64_t>(high) >> unused : static_cast<std::int64_t>(bits);
}

bool primitive::is_literal_int(const Array& x, std::int64_t& value) {
  const Node* n = x.node();
  if (!is_literal(*n) || !is_integer(n->attrs().dtype) || !n->type().weak) return false;
  value = sign_extended(n->attrs().dtype, n->attrs().bits);
  return n->attrs().dtype != DType::uint64 || value >= 0;
}

bool primitive::is_value(DType t, std::int64_t v, bool is_large) {
  if (is_large) return t == DType::uint64 || !is_integer(t);
  switch (t) {
    case DType::int8: return std::in_range<std::int8_t>(v);
    case DType::int16: return std::in_range<std::int16_t>(v);
    case DType::int32: return std::in_range<std::int32_t>(v);
    case DType::int64: return std::in_range<std::int64_t>(v);
    case DType::uint8: return std::in_range<std::uint8_t>(v);
    case DType::uint16: return std::in_range<std::uint16_t>(v);
    case DType::uint32: return std::in_range<std::uint32_t>(v);
    case DType::uint64: return std::in_range<std::uint64_t>(v);
    default: return true;
  }
}

void primitive::check_literal(const Array& x, DType t) {
  const Node* n = x.node();
  if (!is_literal(*n) || !n->type().weak || !is_integer(n->attrs().dtype)) return;
  const auto value = sign_extended(n->attrs().dtype, n->attrs().bits);
  const bool is_large = n->attrs().dtype == DType::uint64 && value < 0;
  if (primitive::is_value(t, value, is_large)) return;
  throw DTypeError(fmt::format(
      "{}: the number {} is no value of {}. A whole number takes the dtype of what it meets, which must hold "
      "it. Cast the array with astype, or give a number that fits.",
      current_function("literal"), is_large ? std::to_string(n->attrs().bits) : std::to_string(value),
      name(t)));
}

// A literal in another dtype; absent for complex ones.
static Array converted_literal(const Array& x, DType t, bool weak) {
  const Attrs& a = x.node()->attrs();
  if (a.dtype == DType::uint64) return primitive::constant(t, primitive::bits_of(t, a.bits), weak);
  if (a.dtype == DType::bool_ || is_integer(a.dtype))
    return primitive::constant(t, primitive::bits_of(t, sign_extended(a.dtype, a.bits)), weak);
  if (a.dtype == DType::float32 && a.hi.size() == 1)  // from the original double, with all its digits
    return primitive::constant(t, primitive::bits_of(t, std::bit_cast<double>(a.hi[0])), weak);
  if (a.dtype == DType::float32)
    return primitive::constant(
        t,
        primitive::bits_of(t, static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(a.bits)))),
        weak);
  if (a.dtype == DType::float64)
    return primitive::constant(t, primitive::bits_of(t, std::bit_cast<double>(a.bits)), weak);
  return {};
}

Array primitive::full(const Shape& shape, DType t, double v) {
  return broadcast_to(constant(t, primitive::bits_of(t, v), true), shape);
}
Array primitive::like(const Array& x, double v) { return full(x.shape(), x.dtype(), v); }
Array primitive::like_whole(const Array& x, std::int64_t v) {
  return broadcast_to(constant(x.dtype(), primitive::bits_of(x.dtype(), v), true), x.shape());
}

Array zeros_of(const Type& t) {
  return primitive::broadcast_to(primitive::constant(t.dtype, 0, t.weak), t.shape);
}
Array one_of(const Type& t) {
  return primitive::broadcast_to(primitive::constant(t.dtype, primitive::bits_of(t.dtype, 1.0), t.weak),
                                 t.shape);
}
Array add_or(const Array& a, const Array& b) {
  return !a.has_value() ? b : !b.has_value() ? a : primitive::add(a, b);
}

Array add_leading(const Array& x, std::int64_t size) {
  Shape dims;
  for (std::size_t d = 0; d < x.shape().size(); d++) dims.push_back(from_last(d, x.shape().size()));
  return primitive::broadcast(x, rules::prepend(size, x.shape()), dims);
}

namespace primitive {

// ---------------------------------------------------------------- elementwise
Array unary(const Op& op, const Array& x) { return record_one(op, {&x, 1}, nullptr); }
Array binary(const Op& op, const Array& a, const Array& b) { return record_refs(op, {a, b}); }
Array add(const Array& a, const Array& b) { return binary(op_add, a, b); }
Array sub(const Array& a, const Array& b) { return binary(op_sub, a, b); }
Array mul(const Array& a, const Array& b) { return binary(op_mul, a, b); }
Array div(const Array& a, const Array& b) { return binary(op_div, a, b); }
Array neg(const Array& x) { return unary(op_neg, x); }
Array exp(const Array& x) { return unary(op_exp, x); }
Array select(const Array& condition, const Array& a, const Array& b) {
  return record_refs(op_where, {condition, a, b});
}

Array placed_like(const Array& value, const Array& model) { return record(op_like, {value, model}); }
Array beside(const Array& x, const Array& partner) { return record(op_beside, {x, partner}); }

Array cast(const Array& x, DType t, bool weak) {
  const Type& from = type_of(x);
  if (from.dtype == t && from.weak == weak) return x;
  if (is_literal(*x.node()))
    if (Array c = converted_literal(x, t, weak); c.has_value()) return c;
  if (is_complex(t) && !is_complex(from.dtype)) {
    const DType part = part_type(t);
    return pair(cast(x, part, weak), broadcast_to(constant(part, 0, weak), from.shape));
  }
  Attrs a;
  a.dtype = t;
  if (weak) a.lo = {1};
  return record(op_cast, {x}, std::move(a));
}
Array bitcast(const Array& x, DType t) {
  Attrs a;
  a.dtype = t;
  return record(op_bitcast, {x}, std::move(a));
}

// ---------------------------------------------------------------- movement
Array broadcast(const Array& x, const Shape& shape, const Shape& dims) {
  if (x.shape() == shape) return x;
  auto a = fresh_attrs();
  a->shape = shape;
  a->dims = dims;
  return record_one(op_broadcast, {&x, 1}, std::move(a));
}

Array broadcast_to(const Array& x, const Shape& shape) {
  const Shape& from = type_of(x).shape;
  if (from == shape) return x;
  Shape dims;
  for (std::size_t d = 0; d < from.size(); d++) dims.push_back(from_last(d, from.size()));
  return broadcast(x, shape, dims);
}

Array reshape(const Array& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  Attrs a;
  a.shape = shape;
  return record(op_reshape, {x}, std::move(a));
}

Array transpose(const Array& x, const Shape& perm) {
  Attrs a;
  bool identity = true;
  for (std::size_t d = 0; d < perm.size(); d++) {
    a.dims.push_back(perm[d] - static_cast<std::int64_t>(perm.size()));
    identity = identity && perm[d] == static_cast<std::int64_t>(d);
  }
  return identity ? x : record(op_transpose, {x}, std::move(a));
}

Array slice(const Array& x, const Shape& lo, const Shape& hi, const Shape& step) {
  Attrs a;
  a.lo = lo;
  a.hi = hi;
  a.step = step.empty() ? Shape::filled(lo.size(), 1) : step;
  if (a.lo == Shape::filled(lo.size(), 0) && a.hi == x.shape() && a.step == Shape::filled(lo.size(), 1))
    return x;
  return record(op_slice, {x}, std::move(a));
}

Array slice_dim(const Array& x, std::size_t dim, std::int64_t lo, std::int64_t hi) {
  Shape from = Shape::filled(x.shape().size(), 0), to = x.shape();
  from[dim] = lo;
  to[dim] = hi;
  return slice(x, from, to);
}
Array element(const Array& vector, std::int64_t k, const Shape& shape) {
  return broadcast_to(reshape(slice(vector, {k}, {k + 1}), {}), shape);
}

Array reverse(const Array& x, const Shape& dims) {
  if (dims.empty()) return x;
  Attrs a;
  a.dims = dims;
  return record(op_reverse, {x}, std::move(a));
}

Array roll(const Array& x, const Shape& shift) {
  if (shift == Shape::filled(shift.size(), 0)) return x;
  Attrs a;
  a.lo = shift;
  return record(op_roll, {x}, std::move(a));
}

Array pad(const Array& x, const Shape& lo, const Shape& hi, std::uint64_t bits) {
  const Shape none_added = Shape::filled(lo.size(), 0);
  if (lo == none_added && hi == none_added) return x;
  Attrs a;
  a.lo = lo;
  a.hi = hi;
  a.bits = bits;
  return record(op_pad, {x}, std::move(a));
}

Array concatenate(std::span<const Array> parts, std::size_t dim) {
  if (parts.size() == 1) return parts[0];
  Attrs a;
  a.dims = {from_last(dim, parts[0].shape().size())};
  return record(op_concatenate, parts, std::move(a));
}

// Strides are created by a new minor dimension, padded from 1 to s and merged.
Array embed(const Array& x, const Shape& lo, const Shape& step, const Shape& shape) {
  Array y = x;
  Shape after = shape;
  for (std::size_t d = 0; d < shape.size(); d++) {
    const std::int64_t s = step.empty() ? 1 : step[d], n = y.shape()[d];
    if (s > 1 && n > 1) {
      Shape split = y.shape(), none_before = Shape::filled(split.size() + 1, 0), behind = none_before,
            merged = y.shape();
      split.insert(d + 1, 1);
      behind[d + 1] = s - 1;
      merged[d] = mul_sizes(n, s);
      y = slice_dim(reshape(pad(reshape(y, split), none_before, behind), merged), d, 0, (n - 1) * s + 1);
    }
    after[d] = shape[d] - lo[d] - y.shape()[d];
  }
  return pad(y, lo, after);
}

// ---------------------------------------------------------------- other ops
Array reduce(Reducer r, const Array& x, const Shape& dims) {
  if (dims.empty()) return x;
  Attrs a;
  a.reducer = r;
  for (std::int64_t d : dims) a.dims.push_back(from_last(static_cast<std::size_t>(d), x.shape().size()));
  return record(op_reduce, {x}, std::move(a));
}

Array expand_reduced(const Array& x, const Shape& shape, const Shape& dims) {
  Shape kept;
  for (std::size_t d = 0; d < shape.size(); d++)
    if (std::find(dims.begin(), dims.end(), static_cast<std::int64_t>(d)) == dims.end())
      kept.push_back(from_last(d, shape.size()));
  return broadcast(x, shape, kept);
}

Array dot(const std::string& letters, const Array& a, const Array& b) {
  Attrs attrs;
  attrs.letters = letters;
  return record(op_dot, {a, b}, std::move(attrs));
}

Array take(const Array& table, const Array& index, std::int64_t batch_rank, std::int64_t index_rank) {
  Attrs a;
  a.lo = {batch_rank};
  a.hi = {index_rank};
  return record(op_take, {table, index}, std::move(a));
}

Array scatter(const Array& index, const Array& updates, std::int64_t batch_rank, std::int64_t index_rank,
              std::int64_t rows, Reducer reducer) {
  Attrs a;
  a.reducer = reducer;
  a.lo = {batch_rank};
  a.hi = {index_rank};
  a.shape = {rows};
  return record(op_scatter, {index, updates}, std::move(a));
}

Array take_along(const Array& x, const Array& index, std::size_t dim) {
  const std::size_t rank = x.shape().size();
  Shape last = rules::dims_of_rank(rank), back = last;
  std::rotate(last.begin() + dim, last.begin() + dim + 1, last.end());
  for (std::size_t d = 0; d < rank; d++)
    back[static_cast<std::size_t>(last[d])] = static_cast<std::int64_t>(d);
  return transpose(take(transpose(x, last), transpose(index, last), static_cast<std::int64_t>(rank) - 1, 1),
                   back);
}

Arrays sort(std::span<const Array> operands, std::size_t dim) {
  Attrs a;
  a.dims = {from_last(dim, operands[0].shape().size())};
  return record_all(op_sort, operands, std::make_shared<const Attrs>(std::move(a)), {});
}

Array iota(const Shape& shape, std::size_t dim, DType t) {
  Attrs a;
  a.shape = shape;
  a.dtype = t;
  a.dims = {from_last(dim, shape.size())};
  return record(op_iota, {}, std::move(a));
}

}  // namespace primitive
}  // namespace shardarray
