// Properties of transform lengths shared by the compiler and the CPU's FFTs.
#pragma once
#include <cstdint>

namespace shardarray {

/// Whether n elements are transformed in steps, of its prime factors; else as one convolution (Bluestein). A large prime factor is a step of
/// several lines side by side, and needs much scratch.
constexpr bool goes_in_steps(std::int64_t n) {
  constexpr std::int64_t of_any_line = 1024, largest_of_all = std::int64_t{1} << 16, lines = 8;
  std::int64_t largest = 1, rest = n;
  for (std::int64_t p = 2; p * p <= rest; p += p == 2 ? 1 : 2)
    for (; rest % p == 0; rest /= p) largest = p;
  if (rest > largest) largest = rest;
  return largest <= of_any_line || (largest <= largest_of_all && n / largest >= lines);
}
/// Whether several workers share a transform of n complex numbers, which needs scratch for intermediates.
constexpr bool is_shared_fourier(std::int64_t n) { return n >= (std::int64_t{1} << 15) && goes_in_steps(n); }
/// The same for n real numbers, computed as half as many complex ones.
constexpr bool is_shared_real_fourier(std::int64_t n) { return n % 2 == 0 && is_shared_fourier(n / 2); }

}  // namespace shardarray
