// Fourier transforms: JAX's numbers (fft.json), the sum itself for every length, precision, bits, what does not move, messages.
#include "shardarray/fft.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <functional>
#include <map>
#include <numbers>
#include <numeric>
#include <string>
#include <vector>

#include "cpu/library/fourier_transform.h"
#include "cpu/loops/loops.h"
#include "cpu_helpers.h"
#include "golden.h"
#include "messages.h"
#include "program_of.h"

namespace fft_test {

namespace sa = shardarray;
namespace fourier = shardarray::fft;
using fourier::Norm;
using golden::Json;
using program_test::prepare;
using sa::Array;
using sa::P;
using Number = std::complex<double>;

namespace {

/// |a - b| over the size of b.
double distance(const std::vector<Number>& a, const std::vector<Number>& b) {
  REQUIRE(a.size() == b.size());
  double error = 0, size = 0;
  for (std::size_t k = 0; k < a.size(); k++) error += std::norm(a[k] - b[k]), size += std::norm(b[k]);
  return std::sqrt(error / std::max(size, 1e-300));
}

Norm norm_of(const Json& attrs) {
  const std::string n = attrs.value("norm", "backward");
  return n == "ortho" ? Norm::ortho : n == "forward" ? Norm::forward : Norm::backward;
}
fourier::Options options(const Json& attrs) {
  fourier::Options o{.axis = attrs.value("axis", std::int64_t{-1}), .norm = norm_of(attrs)};
  if (attrs.contains("n")) o.n = attrs["n"].get<std::int64_t>();
  return o;
}
fourier::AxesOptions axes_options(const Json& attrs) {
  fourier::AxesOptions o{.norm = norm_of(attrs)};
  if (attrs.contains("s")) o.s = golden::shape_of(attrs["s"]);
  if (attrs.contains("axes")) o.axes = golden::shape_of(attrs["axes"]);
  return o;
}
using Function = std::function<Array(const Array&, const Json&)>;
const std::map<std::string, Function>& functions() {
#define ONE(name)                                                                     \
  {                                                                                   \
#name, [](const Array& x, const Json& a) { return fourier::name(x, options(a)); } \
  }
#define SEVERAL(name)                                                                      \
  {                                                                                        \
#name, [](const Array& x, const Json& a) { return fourier::name(x, axes_options(a)); } \
  }
  static const std::map<std::string, Function> all{
      ONE(fft),      ONE(ifft),      ONE(rfft),      ONE(irfft),     ONE(hfft),
      ONE(ihfft),    SEVERAL(fftn),  SEVERAL(ifftn), SEVERAL(rfftn), SEVERAL(irfftn),
      SEVERAL(fft2), SEVERAL(ifft2), SEVERAL(rfft2), SEVERAL(irfft2)};
#undef ONE
#undef SEVERAL
  return all;
}

/// The sum, with exact angles.
std::vector<Number> plain(const std::vector<Number>& x, int sign) {
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<Number> turns;
  for (std::int64_t k = 0; k < n; k++)
    turns.push_back(
        std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n)));
  std::vector<Number> y(x.size());
  for (std::int64_t k = 0; k < n; k++)
    for (std::int64_t j = 0; j < n; j++)
      y[static_cast<std::size_t>(k)] +=
          x[static_cast<std::size_t>(j)] * turns[static_cast<std::size_t>(j * k % n)];
  return y;
}
std::vector<Number> samples(std::int64_t n) {
  std::vector<Number> x;
  for (std::int64_t k = 0; k < n; k++)
    x.emplace_back(static_cast<double>((k * 37 + k / 3) % 19 - 9) / 8,
                   static_cast<double>((k * 11 + 5) % 13 - 6) / 8);
  return x;
}

}  // namespace

TEST_CASE("fft: JAX's values and pullbacks") {
  const Json all = golden::load("fft.json");
  for (const Json& c : all["cases"]) {
    const std::string name = c["name"];
    const Function& f = functions().at(name);
    const auto call = [&](const Array& x) { return f(x, c["attrs"]); };
    for (const bool is_double : {true, false}) {
      const sa::DType t = is_double ? sa::complex128 : sa::complex64;
      const double tolerance = is_double ? 1e-13 : 4e-7;
      const std::string what = name + " " + c["attrs"].dump();
      const Array x = golden::array_of_parts(c["in"], t);
      const Array y = call(x);
      CHECK_MESSAGE(y.shape() == golden::shape_of(c["out"]["shape"]), what);
      CHECK_MESSAGE(sa::is_complex(y.dtype()) == (c["out"]["dtype"] == "complex128"), what);
      CHECK_MESSAGE(distance(y.to_vector<Number>(), golden::complex_numbers(c["out"])) < tolerance, what);
      const auto [value, pull] = sa::vjp(call, x);
      const auto [back] = pull(golden::array_of_parts(c["given"], t));
      CHECK_MESSAGE(distance(back.to_vector<Number>(), golden::complex_numbers(c["back"])) < tolerance,
                    (what + ", back"));
    }
  }
  for (const Json& c : all["values"]) {
    const std::int64_t n = c["attrs"]["n"];
    const double d = c["attrs"]["d"];
    const Array got =
        c["name"] == "fftfreq" ? fourier::fftfreq(n, d, sa::float64) : fourier::rfftfreq(n, d, sa::float64);
    CHECK(distance(got.to_vector<Number>(), golden::complex_numbers(c["out"])) < 1e-13);
  }
}

TEST_CASE("fft: every length is the sum") {
  std::vector<std::int64_t> lengths(200);
  std::iota(lengths.begin(), lengths.end(), 1);
  // prime, with large prime factors, in two steps, powers of each radix
  for (const std::int64_t n :
       {210, 243, 251, 256, 257, 343, 509, 512, 625, 1001, 1009, 1331, 2048, 2058, 2197, 2310})
    lengths.push_back(n);
  for (const std::int64_t n : lengths) {
    const auto x = samples(n);
    const Array z = sa::array(x, sa::complex128);
    const auto forward = plain(x, -1), back = plain(x, 1);
    CHECK_MESSAGE(distance(fourier::fft(z).to_vector<Number>(), forward) < 2e-14, n);
    CHECK_MESSAGE(distance((fourier::ifft(z) * static_cast<double>(n)).to_vector<Number>(), back) < 2e-14, n);
    CHECK_MESSAGE(distance(fourier::fft(z.astype(sa::complex64)).to_vector<Number>(), forward) < 1e-7, n);
    const Array re = sa::real(z);
    std::vector<Number> real_x;
    for (const Number& v : x) real_x.emplace_back(v.real(), 0);
    auto half = plain(real_x, -1);
    half.resize(static_cast<std::size_t>(n / 2 + 1));
    CHECK_MESSAGE(distance(fourier::rfft(re).to_vector<Number>(), half) < 2e-14, n);
    CHECK_MESSAGE(distance(fourier::irfft(fourier::rfft(re), {.n = n}).to_vector<Number>(), real_x) < 2e-14,
                  n);
  }
}

TEST_CASE("fft: a long transform keeps its digits") {
  for (const std::int64_t n : {std::int64_t{1} << 18, std::int64_t{100'003}, std::int64_t{96'000}}) {
    const Array z = sa::array(samples(n), sa::complex128);
    CHECK(distance(fourier::ifft(fourier::fft(z)).to_vector<Number>(), samples(n)) < 1e-14);
    const Array narrow = z.astype(sa::complex64);
    CHECK(distance(fourier::fft(narrow).to_vector<Number>(), fourier::fft(z).to_vector<Number>()) < 1e-7);
  }
}

// One and several in a row, of each kind: shared by workers, by one worker, with a large prime factor.
TEST_CASE("fft: a long transform is the sum, place by place") {
  for (const std::int64_t n : {48'048, 65'536, 100'000, 4'099, 2 * 32'768 + 6}) {
    const auto x = samples(n);
    const Array z = sa::array(x, sa::complex128), re = sa::real(z);
    const auto size = std::sqrt(static_cast<double>(n)) * 0.9;  // of a result
    const auto whole = fourier::fft(z).to_vector<Number>(), of_real = fourier::fft(re).to_vector<Number>(),
               half = fourier::rfft(re).to_vector<Number>();
    const auto back = fourier::irfft(fourier::rfft(re), {.n = n}).to_vector<double>();
    const auto narrow = fourier::rfft(re.astype(sa::float32)).to_vector<Number>();
    REQUIRE(half.size() == static_cast<std::size_t>(n / 2 + 1));
    std::vector<std::complex<long double>> turns;
    for (std::int64_t k = 0; k < n; k++)
      turns.push_back(std::polar(1.0L, -2 * std::numbers::pi_v<long double> * static_cast<long double>(k) /
                                           static_cast<long double>(n)));
    for (std::int64_t at = 0; at < 24; at++) {
      const std::int64_t k = at < 2 ? at : at == 2 ? n / 2 : (at * at * 7919 + 13 * at) % n;
      std::complex<long double> sum = 0;
      for (std::int64_t j = 0; j < n; j++)
        sum += std::complex<long double>(x[static_cast<std::size_t>(j)]) *
               turns[static_cast<std::size_t>(j * k % n)];
      CHECK_MESSAGE(std::abs(whole[static_cast<std::size_t>(k)] - Number(sum)) < 1e-14 * size, n);
    }
    CHECK_MESSAGE(distance(half, {of_real.begin(), of_real.begin() + n / 2 + 1}) < 2e-15, n);
    CHECK_MESSAGE(distance(narrow, half) < 1e-7, n);
    std::vector<Number> given, got;
    for (const Number& v : x) given.emplace_back(v.real(), 0);
    for (const double v : back) got.emplace_back(v, 0);
    CHECK_MESSAGE(distance(got, given) < 1e-14, n);
  }
}

TEST_CASE("fft: a line has the same bits wherever it stands, and for any number of workers") {
  for (const std::int64_t n : {5, 17, 64, 125, 257, 1000, 2401, 2500, 40'000, 66'000}) {
    const std::int64_t rows = n > 10'000 ? 3 : 21;
    const Array z = sa::array(samples(rows * n), {rows, n}, sa::complex128);
    for (const bool is_double : {true, false}) {
      const Array pairs = is_double ? z : z.astype(sa::complex64), re = sa::real(pairs);
      using Results = std::array<std::vector<Number>, 4>;
      const auto add_bits = [&](Results& all, const Array& of_pairs, const Array& of_real) {
        const Array results[] = {fourier::fft(of_pairs), fourier::ifft(of_pairs), fourier::rfft(of_real),
                                 fourier::irfft(of_pairs, {.n = 2 * n - 2})};
        for (std::size_t k = 0; k < all.size(); k++) {
          const auto numbers = results[k].to_vector<Number>();
          all[k].insert(all[k].end(), numbers.begin(), numbers.end());
        }
      };
      Results want;
      for (std::int64_t r = 0; r < rows; r += 4) {  // in other company
        const Array at = sa::arange(r, std::min(r + 4, rows));
        add_bits(want, sa::take(pairs, at, 0), sa::take(re, at, 0));
      }
      for (const int workers : {1, 3}) {
        const sa::cpu_test::Workers w(workers);
        Results all;
        add_bits(all, pairs, re);
        CHECK_MESSAGE(all == want, n);
      }
    }
  }
}

#ifndef SHARDARRAY_NO_V3
TEST_CASE("fft: both builds of the kernels give the same bits") {
  if (!sa::has_v3()) return;
  constexpr std::int64_t lines = 5;
  for (const std::int64_t n : {1, 2, 3, 4, 5, 7, 8, 11, 13, 30, 77, 128, 1001, 17, 38, 841, 197, 227, 2018}) {
    const sa::DirectFourier transform(n);
    const auto rounded = [](std::vector<Number> all) {  // whose products do not fit
      for (Number& v : all) v = v / 3.0 + 0.1;
      return all;
    };
    const auto u = rounded(samples(n));
    const sa::FourierRoom room(transform.room());
    const auto x = rounded(samples(lines * (n + 1)));
    for (const bool inverse : {false, true})
      for (const double side : {0, 1, -1}) {
        const auto run = [&](const sa::FourierTable& table) {
          std::vector<Number> y(x.size());
          table.f64({transform.passes(), lines, reinterpret_cast<const double*>(x.data()), 1, n + 1,
                     reinterpret_cast<double*>(y.data()), 1, n + 1, inverse, inverse, 0.3, nullptr,
                     room.data(), side == 0 ? nullptr : reinterpret_cast<const double*>(u.data()), side});
          return y;
        };
        CHECK_MESSAGE(run(sa::fourier_baseline) == run(sa::fourier_v3), n);
      }
    const auto folded = [&](const sa::FourierTable& table) {
      std::vector<Number> y(x.begin(), x.begin() + n + 1);
      auto* const numbers = reinterpret_cast<double*>(y.data());
      table.fold_f64({numbers, numbers, n, 1, n / 2 + 1, reinterpret_cast<const double*>(u.data()), -1, 0.5});
      return y;
    };
    CHECK_MESSAGE(folded(sa::fourier_baseline) == folded(sa::fourier_v3), n);
    const auto multiplied = [&](const sa::FourierTable& table) {
      std::vector<Number> y = x;
      auto* const numbers = reinterpret_cast<double*>(y.data());
      table.multiply(n, numbers, numbers + 2 * n, numbers);
      return y;
    };
    CHECK_MESSAGE(multiplied(sa::fourier_baseline) == multiplied(sa::fourier_v3), n);
  }
}
#endif

TEST_CASE("fft: a transform that workers share has derivatives, maps and placements") {
  const std::int64_t n = 40'000;
  const Array z = sa::array(samples(8 * n), {8, n}, sa::complex128);
  const auto f = sa::jit([](const Array& a) { return fourier::fft(a); });
  const auto want = fourier::fft(z).to_vector<Number>();
  CHECK(sa::vmap([](const Array& r) { return fourier::fft(r); })(z).to_vector<Number>() == want);
  const sa::Mesh mesh = sa::make_mesh({{"x", 8}});
  const Array rows = sa::device_put(z, sa::NamedSharding(mesh, P("x"))),
              columns = sa::device_put(z, sa::NamedSharding(mesh, P(sa::none, "x")));
  CHECK(prepare(f, rows).program().transfers.empty());
  CHECK(sa::testing::read<Number>(f(rows)) == want);
  CHECK(sa::testing::read<Number>(f(columns)) == want);
  // symmetric, so its own transpose; linear, so its own derivative
  const auto [value, pull] = sa::vjp([](const Array& a) { return fourier::fft(a); }, z);
  const auto [back] = pull(z);
  CHECK(back.to_vector<Number>() == want);
  CHECK(sa::jvp([](const Array& a) { return fourier::fft(a); }, z, z).second.to_vector<Number>() == want);
  // <irfft(c), y> is the real part of sum c irfft^T(y): both of half as many complex numbers
  const Array y = sa::real(z), c = fourier::rfft(y * 0.5 + sa::imag(z));
  const auto [there, pull_back] = sa::vjp([&](const Array& a) { return fourier::irfft(a, {.n = n}); }, c);
  const auto [moved] = pull_back(y);
  const double left = sa::sum(there * y).item<double>(), right = sa::sum(sa::real(moved * c)).item<double>();
  CHECK(left == doctest::Approx(right).epsilon(1e-12));
  const auto [there_too, pull_real] = sa::vjp([](const Array& a) { return fourier::rfft(a); }, y);
  const auto [moved_too] = pull_real(c);
  CHECK(sa::sum(sa::real(there_too * c)).item<double>() ==
        doctest::Approx(sa::sum(moved_too * y).item<double>()).epsilon(1e-12));
}

TEST_CASE("fft: shifts") {
  const Array x = sa::arange(5), y = sa::arange(12).reshape({3, 4});
  CHECK(fourier::fftshift(x).to_vector<int>() == std::vector<int>{3, 4, 0, 1, 2});
  CHECK(fourier::ifftshift(x).to_vector<int>() == std::vector<int>{2, 3, 4, 0, 1});
  CHECK(fourier::fftshift(y).to_vector<int>() == std::vector<int>{10, 11, 8, 9, 2, 3, 0, 1, 6, 7, 4, 5});
  CHECK(fourier::ifftshift(fourier::fftshift(y)).to_vector<int>() == y.to_vector<int>());
  CHECK(fourier::fftshift(y, -1).to_vector<int>() == std::vector<int>{2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9});
  CHECK(fourier::fftshift(y, {0}).to_vector<int>() == std::vector<int>{8, 9, 10, 11, 0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("fft: dtypes") {
  CHECK(fourier::fft(sa::arange(4)).dtype() == sa::complex64);
  CHECK(fourier::fft(sa::arange(4, sa::int64)).dtype() == sa::complex128);
  CHECK(fourier::fft(sa::ones({4}, sa::bfloat16)).dtype() == sa::complex64);
  CHECK(fourier::rfft(sa::ones({4}, sa::bool_)).dtype() == sa::complex64);
  CHECK(fourier::irfft(sa::ones({3}, sa::float64)).dtype() == sa::float64);
  CHECK(fourier::fftfreq(4, 1, sa::float16).dtype() == sa::float16);
  CHECK(fourier::fft(sa::zeros({0, 4})).shape() == sa::Shape{0, 4});
}

TEST_CASE("fft: rows that are cut stay where they are, columns come together") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 8}});
  const Array x = sa::array(samples(16 * 8), {16, 8}, sa::complex64);
  const auto f = sa::jit([](const Array& a) { return fourier::fft(a); });
  const auto want = fourier::fft(x).to_vector<Number>();
  const Array rows = sa::device_put(x, sa::NamedSharding(mesh, P("x"))),
              columns = sa::device_put(x, sa::NamedSharding(mesh, P(sa::none, "x")));
  CHECK(prepare(f, rows).program().transfers.empty());
  CHECK(!prepare(f, columns).program().transfers.empty());
  CHECK(sa::testing::read<Number>(f(rows)) == want);
  CHECK(sa::testing::read<Number>(f(columns)) == want);
  CHECK(f(rows).type_string() == "c64[16@x,8]");
  // a batch is mapped row by row
  const Array mapped = sa::vmap([](const Array& r) { return fourier::rfft(r); })(sa::real(x));
  CHECK(mapped.to_vector<Number>() == fourier::rfft(sa::real(x)).to_vector<Number>());
}

TEST_CASE("fft: messages") {
  const Array x = sa::ones({4, 6}), z = x * std::complex(0.f, 1.f);
  CHECK_SAYS(
      fourier::fft(x, {.axis = 2}),
      "fft::fft: axis 2 is out of bounds for shape [4,6] of rank 2. Axes count from 0, or from -1 at the "
      "end. Give one that the array has.",
      sa::ShapeError);
  CHECK_SAYS(fourier::fft(x, {.n = 0}),
             "fft::fft: a transform of 0 elements. It has one at least. Give n, or an axis with elements.",
             sa::ShapeError);
  CHECK_SAYS(fourier::irfft(sa::ones({1})),
             "fft::irfft: a transform of 0 elements. It has one at least. Give n, or an axis with elements.",
             sa::ShapeError);
  CHECK_SAYS(fourier::rfft(z), "fft::rfft: the operand is c64[4,6]. It takes real numbers. Cast with astype.",
             sa::DTypeError);
  CHECK_SAYS(fourier::fftn(x, {.s = sa::Shape{4}, .axes = sa::Shape{0, 1}}),
             "fft::fftn: 1 length for 2 axes. There is one for each. Name the axes.", sa::ShapeError);
  CHECK_SAYS(fourier::fftn(x, {.axes = sa::Shape{1, -1}}),
             "fft::fftn: axes [1,-1] name dimension 1 twice. Every axis may stand once. Remove one.",
             sa::ShapeError);
  CHECK_SAYS(fourier::rfftn(x, {.axes = sa::Shape{}}),
             "fft::rfftn: no axis. The last one is the one of real numbers. Name one.", sa::ShapeError);
  CHECK_SAYS(
      fourier::fftfreq(0),
      "fft::fftfreq: a transform of 0 elements. It has one at least. Give n, or an axis with elements.",
      sa::ShapeError);
  CHECK_SAYS(fourier::fftfreq(4, 1, sa::int32),
             "fft::fftfreq: dtype int32. Frequencies are fractions. Give a floating dtype.", sa::DTypeError);
}

}  // namespace fft_test
