// Properties of transform lengths shared by the compiler and the CPU's FFTs.
#pragma once
#include <cstdint>

namespace shardarray {

/// Larger prime factors make a transform a convolution as a whole (Bluestein); smaller ones are steps of it.
inline constexpr std::int64_t largest_fourier_prime = 1024;
/// Whether n has no prime factor above that.
constexpr bool has_small_factors(std::int64_t n) {
  for (std::int64_t p = 2; p <= largest_fourier_prime && p * p <= n; p += p == 2 ? 1 : 2)
    while (n % p == 0) n /= p;
  return n <= largest_fourier_prime;
}
/// Whether several workers share a transform of n complex numbers, which needs scratch for intermediates.
constexpr bool is_shared_fourier(std::int64_t n) {
  return n >= (std::int64_t{1} << 15) && has_small_factors(n);
}
/// The same for n real numbers, computed as half as many complex ones.
constexpr bool is_shared_real_fourier(std::int64_t n) { return n % 2 == 0 && is_shared_fourier(n / 2); }

}  // namespace shardarray
