#include "runtime/half_floats.h"

#include <cmath>

namespace shardarray {

namespace {

int word(KernelBuilder& b, std::uint32_t bits) { return b.constant_bits(DType::uint32, bits); }
int left(KernelBuilder& b, int v, std::uint32_t by) { return b.binary(Code::shl, v, word(b, by)); }
int right(KernelBuilder& b, int v, std::uint32_t by) { return b.binary(Code::shr, v, word(b, by)); }
int both(KernelBuilder& b, int v, std::uint32_t mask) { return b.binary(Code::and_, v, word(b, mask)); }

constexpr std::uint32_t infinity = 0x7f800000, sign_bit = 0x80000000, magnitude = 0x7fffffff;

// An int64 or uint64 rounded to odd, representable in float64: the last kept bit is set if v is inexact.
int to_odd_53_bits(KernelBuilder& b, int v) {
  const DType t = b.type(v);
  const auto number = [&](std::uint64_t x) { return b.constant_bits(t, x); };
  constexpr std::uint64_t low = (1 << 11) - 1, exact = std::uint64_t{1} << 53;
  const int rest = b.binary(Code::ne, b.binary(Code::and_, v, number(low)), number(0));
  const int odd =
      b.binary(Code::or_, b.binary(Code::and_, v, number(~low)), b.select(rest, number(low + 1), number(0)));
  int large = b.binary(Code::gt, v, number(exact));
  if (t == DType::int64) large = b.binary(Code::or_, large, b.binary(Code::lt, v, number(~exact + 1)));
  return b.select(large, odd, v);
}

// v (float64 or an integer) as float32, rounded to odd (last bit set if inexact), so that the next rounding is correct.
int to_odd(KernelBuilder& b, int v) {
  if (itemsize(b.type(v)) == 8 && is_integer(b.type(v))) v = to_odd_53_bits(b, v);
  const int exact = b.cast(v, DType::float64), near = b.cast(exact, DType::float32),
            back = b.cast(near, DType::float64);
  const int bits = b.bitcast(near, DType::uint32);
  const int beyond = b.binary(Code::gt, b.unary(Code::abs, back), b.unary(Code::abs, exact));
  const int below = b.binary(Code::sub, bits, b.cast(beyond, DType::uint32));
  const int odd = b.binary(Code::or_, below, word(b, 1));
  return b.bitcast(b.select(b.binary(Code::eq, back, exact), bits, odd), DType::float32);
}

// Rounds away the low `dropped` bits of a magnitude, ties to even.
int to_even(KernelBuilder& b, int v, std::uint32_t dropped) {
  const int last = both(b, right(b, v, dropped), 1);
  return b.binary(Code::add, b.binary(Code::add, v, last), word(b, (1u << (dropped - 1)) - 1));
}

}  // namespace

int widen(KernelBuilder& b, int bits, DType t) {
  const int v = b.cast(bits, DType::uint32);
  if (t == DType::bfloat16) return b.bitcast(left(b, v, 16), DType::float32);
  // The exponent biases differ by 112; the product is exact, also for denormals.
  const int shifted = left(b, both(b, v, 0x7fff), 13);
  const int scaled = b.binary(Code::mul, b.bitcast(shifted, DType::float32),
                              b.constant(DType::float32, std::ldexp(1.0, 112)));
  const int special = b.binary(Code::ge, shifted, word(b, 0x7c00u << 13));  // infinite or NaN
  const int value =
      b.select(special, b.binary(Code::or_, shifted, word(b, infinity)), b.bitcast(scaled, DType::uint32));
  return b.bitcast(b.binary(Code::or_, value, left(b, both(b, v, 0x8000), 16)), DType::float32);
}

int narrow(KernelBuilder& b, int v, DType t) {
  const int bits = b.bitcast(v, DType::uint32), absolute = both(b, bits, magnitude);
  const int is_nan = b.binary(Code::gt, absolute, word(b, infinity));
  int value;
  if (t == DType::bfloat16) {
    value = b.select(is_nan, word(b, 0x7fc0), right(b, to_even(b, absolute, 16), 16));
  } else {
    const int normal = right(b, b.binary(Code::sub, to_even(b, absolute, 13), word(b, 112u << 23)), 13);
    // Near 0.5 float32 has the spacing of float16 denormals: the sum rounds.
    const int half = b.constant(DType::float32, 0.5);
    const int sum = b.binary(Code::add, b.bitcast(absolute, DType::float32), half);
    const int denormal = b.binary(Code::sub, b.bitcast(sum, DType::uint32), b.bitcast(half, DType::uint32));
    value = b.select(b.binary(Code::lt, absolute, word(b, 113u << 23)), denormal, normal);
    value = b.select(b.binary(Code::ge, absolute, word(b, 143u << 23)), word(b, 0x7c00), value);
    value = b.select(is_nan, word(b, 0x7e00), value);
  }
  return b.cast(b.binary(Code::or_, value, right(b, both(b, bits, sign_bit), 16)), DType::uint16);
}

int round_to(KernelBuilder& b, int v, DType t) {
  if (b.type(v) != DType::float32) v = to_odd(b, v);
  return widen(b, narrow(b, v, t), t);
}

}  // namespace shardarray
