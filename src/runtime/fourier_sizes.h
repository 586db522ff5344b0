// Properties of transform lengths shared by the compiler and the CPU's FFTs.
#pragma once
#include <cstdint>

namespace shardarray {

/// Whether n is a product of 2, 3, 5, 7, 11 and 13.
constexpr bool has_small_factors(std::int64_t n) {
  for (const std::int64_t p : {2, 3, 5, 7, 11, 13})
    while (n % p == 0) n /= p;
  return n == 1;
}
/// Whether several workers share a transform of n complex numbers, which needs scratch for intermediates.
constexpr bool is_shared_fourier(std::int64_t n) {
  return n >= (std::int64_t{1} << 15) && has_small_factors(n);
}
/// The same for n real numbers, computed as half as many complex ones.
constexpr bool is_shared_real_fourier(std::int64_t n) { return n % 2 == 0 && is_shared_fourier(n / 2); }

}  // namespace shardarray
