// 16-bit floats from and to float32: to nearest, ties to even, denormals kept.
#pragma once
#include <bit>
#include <cstdint>

#include "shardarray/dtype.h"

namespace shardarray {

struct Brain {
  std::uint16_t bits;
  explicit operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
  static Brain nearest(float x) {
    const auto u = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t nan = (u >> 16 & 0x8000) | 0x7fc0, rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
    return {static_cast<std::uint16_t>(x != x ? nan : rounded)};
  }
};

struct Half {
  std::uint16_t bits;
  explicit operator float() const {
    constexpr std::uint32_t exponents = 0x7c00u << 13;
    std::uint32_t u = (bits & 0x7fffu) << 13;
    const std::uint32_t exponent = u & exponents;
    u += (127u - 15) << 23;
    if (exponent == exponents) u += (128u - 16) << 23;
    if (exponent == 0) {  // denormals lack the leading bit
      constexpr std::uint32_t least = 113u << 23;
      u = std::bit_cast<std::uint32_t>(std::bit_cast<float>(u + (1u << 23)) - std::bit_cast<float>(least));
    }
    return std::bit_cast<float>(u | (bits & 0x8000u) << 16);
  }
  static Half nearest(float x) {
    auto u = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t sign = u & 0x80000000u;
    u ^= sign;
    std::uint32_t h = 0;
    if (u >= (127u + 16) << 23) {  // infinity and NaN too
      h = u > 255u << 23 ? 0x7e00 : 0x7c00;
    } else if (u < 113u << 23) {  // the addition rounds to the units of denormals
      constexpr std::uint32_t unit = ((127u - 15) + (23 - 10) + 1) << 23;
      h = std::bit_cast<std::uint32_t>(std::bit_cast<float>(u) + std::bit_cast<float>(unit)) - unit;
    } else {
      h = (u - ((127u - 15) << 23) + 0xfff + (u >> 13 & 1)) >> 13;
    }
    return {static_cast<std::uint16_t>(sign >> 16 | h)};
  }
};

}  // namespace shardarray
