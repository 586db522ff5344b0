#include "runtime/evaluate_instruction.h"

#include <cstring>
#include <limits>

#include "runtime/scalar.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

template <class T> T value_of(std::uint64_t bits) {
  T x;
  std::memcpy(&x, &bits, sizeof x);  // little endian: the low bytes
  return x;
}
template <class T> std::uint64_t pack(T x) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof x);
  return bits;
}
[[noreturn]] void undefined(const char* what) {
  throw InternalError(std::string("evaluate: ") + what +
                      " is not defined for this type. The rules stand in kernel.h. Verify the kernel first.");
}

/// Calls f with a value of the C++ type of `t`.
template <class F> std::uint64_t with_type(DType t, F f) {
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
    case DType::float64: return f(double{});
    default: undefined("a kernel value");
  }
}

template <class T> std::uint64_t compare(Code code, T a, T b) {
  switch (code) {
    case Code::eq: return a == b;
    case Code::ne: return a != b;
    case Code::lt: return a < b;
    case Code::le: return a <= b;
    case Code::gt: return a > b;
    default: return a >= b;
  }
}

template <class T> std::uint64_t on_floats(Code code, T a, T b, T c) {
  switch (code) {
    case Code::sqrt: return pack(scalar::sqrt(a));
    case Code::floor: return pack(scalar::floor(a));
    case Code::ceil: return pack(scalar::ceil(a));
    case Code::round: return pack(scalar::round(a));
    case Code::trunc: return pack(scalar::trunc(a));
    case Code::fma: return pack(scalar::fma(a, b, c));
    default: undefined(name(code));
  }
}

template <class T> std::uint64_t on_integers(Code code, T a, T b) {
  switch (code) {
    case Code::not_: return pack(scalar::not_(a));
    case Code::and_: return pack(scalar::and_(a, b));
    case Code::or_: return pack(scalar::or_(a, b));
    case Code::xor_: return pack(scalar::xor_(a, b));
    case Code::shl:
      if constexpr (!std::is_same_v<T, bool>) return pack(scalar::shl(a, b));
      break;
    case Code::shr:
      if constexpr (!std::is_same_v<T, bool>) return pack(scalar::shr(a, b));
      break;
    default: break;
  }
  undefined(name(code));
}

template <class T> std::uint64_t on_numbers(Code code, T a, T b) {
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

bool is_numeric(Code c) { return c == Code::neg || c == Code::abs || (c >= Code::add && c <= Code::max); }

double call(Function f, double a, double b) {
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
  undefined("a call");
}

template <class T> std::uint64_t convert(DType to, T x) {
  return with_type(to, [&](auto t) { return pack(scalar::cast<decltype(t)>(x)); });
}

}  // namespace

std::uint64_t evaluate_instruction(const Instr& in, DType operand, std::uint64_t a, std::uint64_t b,
                                   std::uint64_t c) {
  if (in.code == Code::constant) return in.imm;
  if (in.code == Code::bitcast) return a;
  if (in.code == Code::select) return a ? b : c;
  if (in.code == Code::call)
    return pack(call(static_cast<Function>(in.imm), value_of<double>(a), value_of<double>(b)));
  return with_type(operand, [&](auto t) -> std::uint64_t {
    using T = decltype(t);
    const T x = value_of<T>(a), y = value_of<T>(b);
    if (in.code == Code::cast) return convert(in.type, x);
    if (in.code >= Code::eq && in.code <= Code::ge) return compare(in.code, x, y);
    if constexpr (!std::is_same_v<T, bool>) {
      if (is_numeric(in.code)) return on_numbers(in.code, x, y);
    }
    if constexpr (std::is_floating_point_v<T>) return on_floats(in.code, x, y, value_of<T>(c));
    else return on_integers(in.code, x, y);
  });
}

std::uint64_t bits_of(DType type, double value) { return convert(type, value); }

std::uint64_t identity_bits(Reducer r, DType type) {
  // Integers saturate at their lowest and highest values.
  constexpr double infinity = std::numeric_limits<double>::infinity();
  switch (r) {
    case Reducer::prod:
    case Reducer::all: return bits_of(type, 1);
    case Reducer::max: return bits_of(type, -infinity);
    case Reducer::min: return bits_of(type, infinity);
    default: return 0;
  }
}

Code combining_code(Reducer r) {
  switch (r) {
    case Reducer::prod: return Code::mul;
    case Reducer::max: return Code::max;
    case Reducer::min: return Code::min;
    case Reducer::any: return Code::or_;
    case Reducer::all: return Code::and_;
    default: return Code::add;
  }
}

}  // namespace shardarray
