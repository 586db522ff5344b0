// Fourier transforms of lengths with every kind of prime factor, compared with sums in long double.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <numbers>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "shardarray/fft.h"
#include "shardarray/shardarray.h"

namespace fft_lengths_test {

namespace sa = shardarray;
namespace fourier = shardarray::fft;
using sa::Array;
using Number = std::complex<double>;
using Numbers = std::vector<Number>;

namespace {

Numbers samples(std::int64_t n) {
  std::mt19937_64 random(static_cast<std::uint64_t>(n));
  std::normal_distribution<double> normal;  // rounded to float32
  Numbers x;
  for (std::int64_t k = 0; k < n; k++) {
    const auto re = static_cast<float>(normal(random));
    x.emplace_back(re, static_cast<float>(normal(random)));
  }
  return x;
}

/// Elements at `places` of the transform, in long double.
Numbers exact(const Numbers& x, const std::vector<std::int64_t>& places) {
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<long double> c, s;
  for (std::int64_t k = 0; k < n; k++) {
    const long double angle =
        -2 * std::numbers::pi_v<long double> * static_cast<long double>(k) / static_cast<long double>(n);
    c.push_back(std::cos(angle));
    s.push_back(std::sin(angle));
  }
  Numbers sums;
  for (const std::int64_t place : places) {
    long double re = 0, im = 0;
    std::int64_t turn = 0;
    for (const Number& v : x) {
      const auto at = static_cast<std::size_t>(turn);
      re += v.real() * c[at] - v.imag() * s[at];
      im += v.real() * s[at] + v.imag() * c[at];
      turn += place;
      if (turn >= n) turn -= n;
    }
    sums.emplace_back(static_cast<double>(re), static_cast<double>(im));
  }
  return sums;
}
/// The largest difference at `places`, over the typical size of an element.
double error_at(const Numbers& got, const std::vector<std::int64_t>& places, const Numbers& want,
                double size) {
  double error = 0;
  for (std::size_t k = 0; k < places.size(); k++)
    error = std::max(error, std::abs(got[static_cast<std::size_t>(places[k])] - want[k]));
  return error / size;
}
Numbers pairs_of(const Array& x) { return x.to_vector<Number>(); }

std::vector<std::int64_t> all_places(std::int64_t n) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// All transforms of n elements, in both precisions; of several lines and along other axes: with the same bits.
void check_length(std::int64_t n, const std::vector<std::int64_t>& places) {
  CAPTURE(n);
  const Numbers x = samples(n);
  const double size = std::sqrt(static_cast<double>(n));
  const Numbers want = exact(x, places);
  std::vector<std::int64_t> mirrored;
  for (const std::int64_t k : places) mirrored.push_back((n - k) % n);
  const Numbers of_mirrored = exact(x, mirrored);
  Numbers of_real;  // transforms of the real parts
  std::vector<std::int64_t> at_real;
  for (std::size_t k = 0; k < places.size(); k++)
    if (places[k] <= n / 2) {
      at_real.push_back(places[k]);
      of_real.push_back((want[k] + std::conj(of_mirrored[k])) * 0.5);
    }
  for (const bool is_double : {true, false}) {
    const double bound = is_double ? 1.5e-14 : 6e-7;
    const Array z = sa::array(x, is_double ? sa::complex128 : sa::complex64), re = sa::real(z);
    const Array forward = fourier::fft(z), real_forward = fourier::rfft(re);
    const Numbers got = pairs_of(forward);
    CHECK(error_at(got, places, want, size) < bound);
    CHECK(error_at(pairs_of(fourier::ifft(z, {.norm = fourier::Norm::forward})), places, of_mirrored, size) <
          bound);
    CHECK(error_at(pairs_of(real_forward), at_real, of_real, size) < bound);
    const Numbers back = pairs_of(fourier::ifft(forward));
    Numbers real_back;
    for (const double v : fourier::irfft(real_forward, {.n = n}).to_vector<double>())
      real_back.emplace_back(v, 0);
    const std::vector<std::int64_t> all = all_places(n);
    CHECK(error_at(back, all, x, 1) < bound);
    Numbers real_x;
    for (const Number& v : x) real_x.emplace_back(v.real(), 0);
    CHECK(error_at(real_back, all, real_x, 1) < bound);

    // Lines that are multiples by powers of two: exact.
    const std::int64_t lines = n > 3000 ? 2 : 5;
    const Array factors = sa::exp2(sa::arange(lines).astype(re.dtype()) - 1);
    const Array batch = z * factors.reshape({lines, 1}), wanted = forward * factors.reshape({lines, 1});
    CHECK(pairs_of(fourier::fft(batch)) == pairs_of(wanted));
    CHECK(pairs_of(fourier::fft(batch.T(), {.axis = 0})) == pairs_of(wanted.T()));
    const Array real_batch = sa::real(batch), real_wanted = real_forward * factors.reshape({lines, 1});
    CHECK(pairs_of(fourier::rfft(real_batch)) == pairs_of(real_wanted));
    CHECK(pairs_of(fourier::rfft(real_batch.T(), {.axis = 0})) == pairs_of(real_wanted.T()));
    const Array inner = sa::moveaxis(batch.reshape({1, lines, n}), 1, 2);
    CHECK(pairs_of(fourier::ifft(inner, {.axis = 1})) ==
          pairs_of(sa::moveaxis(fourier::ifft(batch).reshape({1, lines, n}), 1, 2)));
  }
}
std::vector<std::int64_t> some_places(std::int64_t n) {
  std::vector<std::int64_t> some{0, 1, n / 2, n - 1};
  for (std::int64_t k = 1; k < 16; k++) some.push_back((k * k * 7919 + 13 * k) % n);
  return some;
}

}  // namespace

TEST_CASE("fft: every length up to 600 is the sum, in every kind, precision, batch and along every axis") {
  for (std::int64_t n = 1; n <= 600; n++) check_length(n, all_places(n));
}

TEST_CASE("fft: lengths with large prime factors are the sum") {
  const std::int64_t one_pass[] = {8 * 9 * 37, 7 * 13 * 17, 16 * 101, 27 * 97, 1369,    31 * 31 * 2,
                                   719,        983,         1019,     1021,    2 * 1019};
  const std::int64_t two_steps[] = {17 * 19 * 23, 17 * 17 * 17, 41 * 43 * 2, 61 * 67,  101 * 101,
                                    12 * 1009,    3 * 1021,     7 * 1009,    8 * 1031, 10 * 1031};
  const std::int64_t shared[] = {37'000,   37 * 1009, 83 * 2 * 227, 1019 * 64,
                                 9 * 4093, 16 * 2053, 1031 * 1033};
  const std::int64_t whole[] = {1031, 2 * 1031, 2039, 3 * 1031, 2 * 36'963, 4 * 8'209};
  for (const std::span<const std::int64_t> all :
       {std::span<const std::int64_t>(one_pass), {two_steps}, {shared}, {whole}})
    for (const std::int64_t n : all) check_length(n, some_places(n));
}

}  // namespace fft_lengths_test
