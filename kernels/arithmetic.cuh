// One instruction of kernel IR on bits: what the interpreter's kernels share. The arithmetic is scalar.h's.
#pragma once
#include <stdexcept>

#include "kernels/device.cuh"
// device.cuh says how scalar.h is compiled.
#include "runtime/kernel.h"
#include "runtime/scalar.h"

namespace shardarray::device {

struct Instruction {
  Code code;
  DType type, from;     ///< of the result (store: of the value); of the first operand (select: of the values)
  std::uint8_t detail;  ///< call: the Function; load, load_at, store: bytes of an element
  std::uint16_t dst, a, b, c;  ///< slots
  std::uint64_t imm;           ///< constant: the bits; index, load, load_at, store: the argument
};

template <class T> SHARDARRAY_DEVICE inline T value_of(std::uint64_t bits) {
  if constexpr (std::is_same_v<T, bool>) return (bits & 1) != 0;
  else if constexpr (std::is_same_v<T, float>)
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits));
  else if constexpr (std::is_same_v<T, double>) return __builtin_bit_cast(double, bits);
  else return static_cast<T>(bits);
}
/// Bits stand in the low bytes, zeros above.
template <class T> SHARDARRAY_DEVICE inline std::uint64_t pack(T x) {
  if constexpr (std::is_same_v<T, bool>) return x ? 1 : 0;
  else if constexpr (std::is_same_v<T, float>) return __builtin_bit_cast(std::uint32_t, x);
  else if constexpr (std::is_same_v<T, double>) return __builtin_bit_cast(std::uint64_t, x);
  else return static_cast<std::make_unsigned_t<T>>(x);
}

/// Calls f with a value of the C++ type of `t`, one that kernels compute with.
template <class F> SHARDARRAY_DEVICE inline std::uint64_t with_type(DType t, F f) {
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

SHARDARRAY_DEVICE inline double call_function(Function f, double a, double b) {
  switch (f) {
    case Function::exp: return scalar::exp(a);
    case Function::expm1: return scalar::expm1(a);
    case Function::log: return scalar::log(a);
    case Function::log1p: return scalar::log1p(a);
    case Function::sin: return scalar::sin(a);
    case Function::cos: return scalar::cos(a);
    case Function::tan: return scalar::tan(a);
    case Function::tanh: return scalar::tanh(a);
    case Function::erf: return scalar::erf(a);
    case Function::erf_inv: return scalar::erf_inv(a);
    case Function::pow: return scalar::pow(a, b);
    case Function::atan2: return scalar::atan2(a, b);
    case Function::asin: return scalar::asin(a);
    case Function::acos: return scalar::acos(a);
    case Function::atan: return scalar::atan(a);
    case Function::sinh: return scalar::sinh(a);
    case Function::cosh: return scalar::cosh(a);
    case Function::lgamma: return scalar::lgamma(a);
    case Function::erfc: return scalar::erfc(a);
  }
  return 0;
}

template <class T> SHARDARRAY_DEVICE inline std::uint64_t compare_values(Code code, T a, T b) {
  switch (code) {
    case Code::eq: return a == b;
    case Code::ne: return a != b;
    case Code::lt: return a < b;
    case Code::le: return a <= b;
    case Code::gt: return a > b;
    default: return a >= b;
  }
}
template <class T> SHARDARRAY_DEVICE inline std::uint64_t on_bits(Code code, T a, T b) {
  if constexpr (!std::is_same_v<T, bool>) {
    if (code == Code::shl) return pack(scalar::shl(a, b));
    if (code == Code::shr) return pack(scalar::shr(a, b));
  }
  switch (code) {
    case Code::not_: return pack(scalar::not_(a));
    case Code::and_: return pack(scalar::and_(a, b));
    case Code::or_: return pack(scalar::or_(a, b));
    default: return pack(scalar::xor_(a, b));
  }
}
template <class T> SHARDARRAY_DEVICE inline std::uint64_t on_numbers(Code code, T a, T b) {
  switch (code) {
    case Code::neg: return pack(scalar::neg(a));
    case Code::abs: return pack(scalar::abs(a));
    case Code::add: return pack(scalar::add(a, b));
    case Code::sub: return pack(scalar::sub(a, b));
    case Code::mul: return pack(scalar::mul(a, b));
    case Code::div: return pack(scalar::div(a, b));
    case Code::rem: return pack(scalar::rem(a, b));
    case Code::min: return pack(scalar::min(a, b));
    default: return pack(scalar::max(a, b));
  }
}
template <class T> SHARDARRAY_DEVICE inline std::uint64_t on_floats(Code code, T a, T b, T c) {
  switch (code) {
    case Code::sqrt: return pack(scalar::sqrt(a));
    case Code::floor: return pack(scalar::floor(a));
    case Code::ceil: return pack(scalar::ceil(a));
    case Code::round: return pack(scalar::round(a));
    case Code::trunc: return pack(scalar::trunc(a));
    case Code::fma: return pack(scalar::fma(a, b, c));
    default: return on_numbers(code, a, b);
  }
}

/// The result of an instruction that is no load, store, index or reduce.
SHARDARRAY_DEVICE SHARDARRAY_NOT_INLINE inline std::uint64_t evaluate(const Instruction& in, std::uint64_t a,
                                                                      std::uint64_t b, std::uint64_t c) {
  const Code code = in.code;
  switch (code) {
    case Code::constant: return in.imm;
    case Code::bitcast: return a;
    case Code::select: return a & 1 ? b : c;
    case Code::call:
      return pack(call_function(static_cast<Function>(in.detail), value_of<double>(a), value_of<double>(b)));
    case Code::cast:
      return with_type(in.from, [&](auto from) {
        const auto x = value_of<decltype(from)>(a);
        return with_type(in.type, [&](auto to) { return pack(scalar::cast<decltype(to)>(x)); });
      });
    default: break;
  }
  return with_type(in.from, [&](auto t) -> std::uint64_t {
    using T = decltype(t);
    const T x = value_of<T>(a), y = value_of<T>(b);
    if (code >= Code::eq && code <= Code::ge) return compare_values(code, x, y);
    if constexpr (std::is_floating_point_v<T>) return on_floats(code, x, y, value_of<T>(c));
    if constexpr (std::is_same_v<T, bool>) return on_bits(code, x, y);
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      const bool logical = code == Code::not_ || (code >= Code::and_ && code <= Code::shr);
      return logical ? on_bits(code, x, y) : on_numbers(code, x, y);
    }
  });
}

SHARDARRAY_DEVICE inline std::uint64_t rounded_off_bits(DType t, std::uint64_t a, std::uint64_t b) {
  return t == DType::float32 ? pack(scalar::rounded_off(value_of<float>(a), value_of<float>(b)))
                             : pack(scalar::rounded_off(value_of<double>(a), value_of<double>(b)));
}
SHARDARRAY_DEVICE inline std::uint64_t with_rounded_off_bits(DType t, std::uint64_t total,
                                                             std::uint64_t lost) {
  return t == DType::float32
             ? pack(scalar::with_rounded_off(value_of<float>(total), value_of<float>(lost)))
             : pack(scalar::with_rounded_off(value_of<double>(total), value_of<double>(lost)));
}

/// What the device does at such an address; hosts would read it.
SHARDARRAY_DEVICE inline void check_aligned([[maybe_unused]] const std::byte* p,
                                            [[maybe_unused]] std::uint32_t bytes) {
#ifndef __CUDACC__
  if (reinterpret_cast<std::uintptr_t>(p) % bytes != 0) throw std::runtime_error("misaligned address");
#endif
}
/// Elements of 1, 2, 4 or 8 bytes.
SHARDARRAY_DEVICE inline std::uint64_t read_bits(const std::byte* p, std::uint32_t bytes) {
  check_aligned(p, bytes);
  switch (bytes) {
    case 1: return *reinterpret_cast<const std::uint8_t*>(p);
    case 2: return *reinterpret_cast<const std::uint16_t*>(p);
    case 4: return *reinterpret_cast<const std::uint32_t*>(p);
    default: return *reinterpret_cast<const std::uint64_t*>(p);
  }
}
SHARDARRAY_DEVICE inline void write_bits(std::byte* p, std::uint32_t bytes, std::uint64_t x) {
  check_aligned(p, bytes);
  switch (bytes) {
    case 1: *reinterpret_cast<std::uint8_t*>(p) = static_cast<std::uint8_t>(x); break;
    case 2: *reinterpret_cast<std::uint16_t*>(p) = static_cast<std::uint16_t>(x); break;
    case 4: *reinterpret_cast<std::uint32_t*>(p) = static_cast<std::uint32_t>(x); break;
    default: *reinterpret_cast<std::uint64_t*>(p) = x; break;
  }
}

/// 16 bytes are complex numbers, which are only moved.
struct alignas(16) Bytes16 {
  std::uint64_t low, high;
};
SHARDARRAY_DEVICE inline void copy_element(std::byte* to, const std::byte* from, std::uint32_t bytes) {
  if (bytes == 16) {
    check_aligned(to, 16);
    check_aligned(from, 16);
    *reinterpret_cast<Bytes16*>(to) = *reinterpret_cast<const Bytes16*>(from);
    return;
  }
  write_bits(to, bytes, read_bits(from, bytes));
}

}  // namespace shardarray::device
