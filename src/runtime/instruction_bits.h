// One kernel IR instruction on bits, for whoever runs them one at a time: the evaluator and the device interpreter's kernels. Values occupy
// the low bytes, zeros above. Compiled for hosts and devices, like scalar.h, whose arithmetic it uses.
#pragma once
#include "runtime/kernel.h"
#include "runtime/scalar.h"

namespace shardarray::scalar {

template <class T> SHARDARRAY_SCALAR T value_of(std::uint64_t bits) {
  if constexpr (std::is_same_v<T, bool>) return (bits & 1) != 0;
  else if constexpr (sizeof(T) == 4) return from_bits<T>(static_cast<std::uint32_t>(bits));
  else if constexpr (sizeof(T) == 8) return from_bits<T>(bits);
  else return static_cast<T>(bits);
}
template <class T> SHARDARRAY_SCALAR std::uint64_t pack(T x) {
  if constexpr (std::is_same_v<T, bool>) return x ? 1 : 0;
  else if constexpr (std::is_floating_point_v<T>) return from_bits<Bits<T>>(x);
  else return static_cast<std::make_unsigned_t<T>>(x);
}

/// Calls f with a value of the C++ type for `t`, a type that kernels compute with.
template <class F> SHARDARRAY_SCALAR auto with_type(DType t, F f) {
  switch (t) {
    case DType::bool_: return f(bool{});
    case DType::int8: return f(std::int8_t{});
    case DType::int16: return f(std::int16_t{});
    case DType::int32: return f(std::int32_t{});
    case DType::int64: return f(std::int64_t{});
    case DType::uint8: return f(std::uint8_t{});
    case DType::uint16: return f(std::uint16_t{});
    case DType::uint32: return f(std::uint32_t{});
    case DType::uint64: return f(std::uint64_t{});
    case DType::float32: return f(float{});
    default: return f(double{});
  }
}

SHARDARRAY_SCALAR double call_function(Function f, double a, double b) {
#define SHARDARRAY_UNARY(name) \
  if (f == Function::name) return name(a);
#define SHARDARRAY_BINARY(name) \
  if (f == Function::name) return name(a, b);
#include "runtime/functions.inc"
  return 0;
}

template <class T> SHARDARRAY_SCALAR std::uint64_t compare_values(Code code, T a, T b) {
  switch (code) {
    case Code::eq: return a == b;
    case Code::ne: return a != b;
    case Code::lt: return a < b;
    case Code::le: return a <= b;
    case Code::gt: return a > b;
    default: return a >= b;
  }
}
/// For integers and bool.
template <class T> SHARDARRAY_SCALAR std::uint64_t on_bits(Code code, T a, T b) {
  if constexpr (!std::is_same_v<T, bool>) {
    if (code == Code::shl) return pack(shl(a, b));
    if (code == Code::shr) return pack(shr(a, b));
  }
  switch (code) {
    case Code::not_: return pack(not_(a));
    case Code::and_: return pack(and_(a, b));
    case Code::or_: return pack(or_(a, b));
    default: return pack(xor_(a, b));
  }
}
/// For integers and floats.
template <class T> SHARDARRAY_SCALAR std::uint64_t on_numbers(Code code, T a, T b) {
  switch (code) {
    case Code::neg: return pack(neg(a));
    case Code::abs: return pack(abs(a));
    case Code::add: return pack(add(a, b));
    case Code::sub: return pack(sub(a, b));
    case Code::mul: return pack(mul(a, b));
    case Code::div: return pack(div(a, b));
    case Code::rem: return pack(rem(a, b));
    case Code::min: return pack(min(a, b));
    default: return pack(max(a, b));
  }
}
template <class T> SHARDARRAY_SCALAR std::uint64_t on_floats(Code code, T a, T b, T c) {
  switch (code) {
    case Code::sqrt: return pack(sqrt(a));
    case Code::floor: return pack(floor(a));
    case Code::ceil: return pack(ceil(a));
    case Code::round: return pack(round(a));
    case Code::trunc: return pack(trunc(a));
    case Code::fma: return pack(fma(a, b, c));
    default: return on_numbers(code, a, b);
  }
}

/// The result of an instruction other than constant, load, store, index, call or reduce. `from`: the operands' type. kernel.h must define
/// the instruction for it.
SHARDARRAY_SCALAR std::uint64_t evaluate_bits(Code code, DType type, DType from, std::uint64_t a,
                                              std::uint64_t b, std::uint64_t c) {
  if (code == Code::bitcast) return a;
  if (code == Code::select) return a & 1 ? b : c;
  return with_type(from, [&](auto t) -> std::uint64_t {
    using T = decltype(t);
    const T x = value_of<T>(a), y = value_of<T>(b);
    if (code == Code::cast) return with_type(type, [&](auto to) { return pack(cast<decltype(to)>(x)); });
    if (code >= Code::eq && code <= Code::ge) return compare_values(code, x, y);
    if constexpr (std::is_floating_point_v<T>) return on_floats(code, x, y, value_of<T>(c));
    else if constexpr (std::is_same_v<T, bool>) return on_bits(code, x, y);
    else
      return code == Code::not_ || (code >= Code::and_ && code <= Code::shr) ? on_bits(code, x, y)
                                                                             : on_numbers(code, x, y);
  });
}

}  // namespace shardarray::scalar
