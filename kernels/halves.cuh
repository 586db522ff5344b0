// Conversions between 16-bit floats and float32: round to nearest even, denormals kept. Devices have an instruction for each, which turns a
// NaN into their canonical one.
#pragma once
#include "kernels/access.cuh"
// See device.cuh for how scalar.h is compiled.
#include "runtime/scalar.h"
#ifndef __CUDA_ARCH__
#include <cmath>
#endif

namespace shardarray::device {

#ifndef __CUDA_ARCH__
/// The bits of the nearest value with `digits` fraction bits and exponents in `least` .. `most`.
SHARDARRAY_DEVICE inline std::uint16_t narrowed(float x, int digits, int least, int most) {
  const std::uint32_t sign = scalar::from_bits<std::uint32_t>(x) >> 16 & 0x8000;
  const std::uint32_t infinity = static_cast<std::uint32_t>(most - least + 2) << digits;
  if (x != x) return static_cast<std::uint16_t>(sign | infinity | 1u << (digits - 1));
  const double magnitude = std::fabs(static_cast<double>(x));
  int exponent = least;
  if (magnitude > 0) exponent = std::ilogb(magnitude) > least ? std::ilogb(magnitude) : least;
  if (exponent > most) return static_cast<std::uint16_t>(sign | infinity);
  // In units of the last bit; rounding up to the next exponent carries into the exponent bits.
  const auto units = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(magnitude, digits - exponent)));
  return static_cast<std::uint16_t>(sign |
                                    (units + (static_cast<std::uint32_t>(exponent - least) << digits)));
}
#endif

SHARDARRAY_DEVICE inline std::uint16_t narrow_float16(float x) {
#ifdef __CUDA_ARCH__
  std::uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
#else
  return narrowed(x, 10, -14, 15);
#endif
}
SHARDARRAY_DEVICE inline std::uint16_t narrow_bfloat16(float x) {
#ifdef __CUDA_ARCH__
  std::uint16_t bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
#else
  return narrowed(x, 7, -126, 127);
#endif
}
SHARDARRAY_DEVICE inline float widen_float16(std::uint16_t bits) {
#ifdef __CUDA_ARCH__
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
#else
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  float x = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                          : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  if (exponent == 31) x = scalar::from_bits<float>(0x7f800000u | static_cast<std::uint32_t>(fraction) << 13);
  return bits & 0x8000 ? -x : x;
#endif
}
SHARDARRAY_DEVICE inline float widen_bfloat16(std::uint16_t bits) {
  return scalar::from_bits<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// Narrowed and widened again. Conversions of pairs are faster than those of single numbers; a bfloat16 pair whose lower half is 0 is the
/// float32.
SHARDARRAY_DEVICE inline float rounded_bfloat16(float x) {
#ifdef __CUDA_ARCH__
  float pair;
  asm("{.reg .b32 p; cvt.rn.bf16x2.f32 p, %1, 0f00000000; mov.b32 %0, p;}" : "=f"(pair) : "f"(x));
  return pair;
#else
  return widen_bfloat16(narrow_bfloat16(x));
#endif
}
SHARDARRAY_DEVICE inline float rounded_float16(float x) { return widen_float16(narrow_float16(x)); }

}  // namespace shardarray::device
