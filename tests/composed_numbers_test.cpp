// Functions composed of several ops, in dtypes in which an intermediate step would overflow or lose digits. The reference is computed
// here in float64 or __int128.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "golden.h"
#include "messages.h"

namespace composed_numbers_test {

namespace sa = shardarray;
using sa::Array;
using sa::DType;
using sa::Shape;

namespace {

constexpr DType whole_dtypes[] = {sa::int8,  sa::int16,  sa::int32,  sa::int64,
                                  sa::uint8, sa::uint16, sa::uint32, sa::uint64};
struct Floats {
  DType type;
  double epsilon;  ///< the distance of 1 to the next number
  double largest;
  double smallest;  ///< the first number above 0
};
const Floats floats[] = {{sa::float16, 0x1p-10, 65504, 0x1p-24},
                         {sa::bfloat16, 0x1p-7, 0x1.fep127, 0x1p-133},
                         {sa::float32, 0x1p-23, std::numeric_limits<float>::max(), 0x1p-149},
                         {sa::float64, 0x1p-52, std::numeric_limits<double>::max(), 0x1p-1074}};

std::vector<double> values(const Array& x) { return sa::testing::values(sa::astype(x, sa::float64)); }

/// Whether every element is its truth, rounded to the dtype at the end, up to an ulp or `slack` of the largest number met.
void check_close(const Array& x, const Floats& f, const std::vector<double>& want, double largest) {
  const std::vector<double> got = values(x);
  REQUIRE(got.size() == want.size());
  std::size_t bad = 0, first = 0;
  for (std::size_t k = 0; k < got.size(); k++) {
    const double slack =
        f.epsilon * std::abs(want[k]) + 0x1p-20 * largest * (f.epsilon < 0x1p-20 ? 1 : 0x1p-1) + f.smallest;
    if (!(std::abs(got[k] - want[k]) <= slack) && bad++ == 0) first = k;
  }
  CAPTURE(sa::name(f.type));
  CAPTURE(first);
  CAPTURE(got.empty() ? 0.0 : got[first]);
  CAPTURE(want.empty() ? 0.0 : want[first]);
  CHECK(bad == 0);
}

}  // namespace

TEST_CASE("composed numbers: linspace and arange are right at every position of every float dtype") {
  struct Range {
    double start, stop;
    std::int64_t num;
  };
  for (const Floats& f : floats)
    for (const Range& r : {Range{0, 1, 5}, Range{0, 1, 5000}, Range{-3, 7, 70001}, Range{8, -8, 2050}})
      for (const bool endpoint : {true, false}) {
        CAPTURE(r.num);
        CAPTURE(endpoint);
        const double step = (r.stop - r.start) / static_cast<double>(endpoint ? r.num - 1 : r.num);
        std::vector<double> want;
        for (std::int64_t k = 0; k < r.num; k++) want.push_back(r.start + step * static_cast<double>(k));
        check_close(sa::linspace(r.start, r.stop, r.num, {.endpoint = endpoint, .dtype = f.type}), f, want,
                    8);
        if (endpoint) CHECK(values(sa::linspace(r.start, r.stop, r.num, {.dtype = f.type})).back() == r.stop);
        // A little less than a step before the end: so many elements, whatever rounding does.
        const double stop = r.start + step * (static_cast<double>(r.num) - 0.5);
        check_close(sa::arange(r.start, stop, step, f.type), f, want, 8);
      }
}

TEST_CASE("composed numbers: whole numbers at equal distances are rounded down from the exact ones") {
  __extension__ using Wide = __int128;
  struct Range {
    std::int64_t start, stop;
  };
  const auto check = [](Range r, std::int64_t num, bool endpoint, DType t) {
    std::vector<double> want;
    const std::int64_t intervals = std::max<std::int64_t>(1, endpoint ? num - 1 : num);
    for (std::int64_t k = 0; k < num; k++) {
      const Wide distance = static_cast<Wide>(r.stop - r.start) * k;
      Wide quotient = distance / intervals;
      if (distance % intervals != 0 && distance < 0) quotient--;
      want.push_back(static_cast<double>(r.start + static_cast<std::int64_t>(quotient)));
    }
    CAPTURE(r.stop);
    CAPTURE(num);
    CAPTURE(sa::name(t));
    CHECK(values(sa::linspace(static_cast<double>(r.start), static_cast<double>(r.stop), num,
                              {.endpoint = endpoint, .dtype = t})) == want);
  };
  for (const DType t : whole_dtypes)
    for (std::int64_t num = 1; num <= 128; num += num < 40 ? 1 : 11)
      for (const bool endpoint : {true, false}) {
        check({0, num - 1}, num, endpoint, t);
        check({3, 120}, num, endpoint, t);
        if (!sa::is_unsigned_integer(t)) check({100, -100}, num, endpoint, t);
      }
  for (int tenths = -40; tenths < 40; tenths++) {  // the last one is stop, wherever the others lie
    const double start = tenths / 10.0;
    CHECK(values(sa::linspace(start, 5, 7, {.dtype = sa::int32})).back() == 5);
    CHECK(values(sa::linspace(start, -5, 4, {.dtype = sa::int32}))[0] == std::floor(start));
  }
  check({0, 16777217}, 3, true, sa::int32);
  check({0, 123456789}, 2, true, sa::int64);
  check({-1234567890123, 1234567890123}, 17, true, sa::int64);
}

TEST_CASE("composed numbers: sums of exponentials neither overflow nor lose digits in 16 bits") {
  constexpr std::int64_t n = 70000;  // more than the largest float16
  for (const Floats& f : floats) {
    const double count = static_cast<double>(n), inverse = 1 / count;
    check_close(sa::logsumexp(sa::zeros({n}, f.type)), f, {std::log(count)}, 1);
    check_close(sa::logsumexp(sa::zeros({2, n}, f.type), {.axis = 1, .keepdims = true}), f,
                {std::log(count), std::log(count)}, 1);
    check_close(sa::log_softmax(sa::zeros({n}, f.type))[sa::slice(0, 3)], f, std::vector(3, -std::log(count)),
                1);
    check_close(sa::softmax(sa::zeros({n}, f.type))[sa::slice(0, 3)], f, std::vector(3, inverse), inverse);
    const Array slope = sa::grad([](const Array& x) { return sa::logsumexp(x); })(sa::zeros({n}, f.type));
    check_close(slope[sa::slice(0, 3)], f, std::vector(3, inverse), inverse);
    CHECK(sa::softmax(sa::zeros({3}, f.type)).dtype() == f.type);
    CHECK(sa::log_softmax(sa::zeros({3}, f.type)).dtype() == f.type);
    CHECK(sa::logsumexp(sa::zeros({3}, f.type)).dtype() == f.type);
  }
}

TEST_CASE("composed numbers: rounding to decimals holds what the dtype holds") {
  for (const Floats& f : floats)
    for (const int decimals : {-2, -1, 1, 2, 3}) {
      CAPTURE(decimals);
      std::vector<double> given, want;
      for (const double v : {0.0, 1.0, 3.125, -2.71875, 1000.0, -1024.0, 4096.0, 12345.0}) {
        const double held = values(sa::full({1}, v, f.type))[0], factor = std::pow(10.0, decimals);
        given.push_back(held);
        want.push_back(std::nearbyint(held * factor) / factor);
      }
      const Array x = sa::astype(sa::array(given, sa::float64), f.type);
      check_close(sa::round(x, decimals), f, want, 1);
      CHECK(sa::round(x, decimals).dtype() == f.type);
    }
}

TEST_CASE("composed numbers: whole numbers become 16-bit floats by one rounding, as literals and as arrays") {
  for (const DType t : {sa::float16, sa::bfloat16})
    for (int exponent = 8; exponent < 63; exponent++)
      for (const std::int64_t tie : {std::int64_t{1} << exponent >> 8, std::int64_t{3} << exponent >> 8,
                                     std::int64_t{1} << exponent >> 11})
        for (const std::int64_t off : {-1, 0, 1})
          for (const std::int64_t sign : {1, -1}) {
            const std::int64_t v = sign * ((std::int64_t{1} << exponent) + tie + off);
            CAPTURE(v);
            const std::vector<double> converted = values(sa::astype(sa::array({v}, sa::int64), t));
            CHECK(values(sa::full({1}, v, t)) == converted);
            CHECK(values(sa::ones({1}, t) * v) == converted);
            CHECK(values(sa::array({v}, t)) == converted);
            if (v < 0) continue;
            const auto word = static_cast<std::uint64_t>(v);
            CHECK(values(sa::full({1}, word, t)) == converted);
          }
}

TEST_CASE("composed numbers: x^y has the slope y x^(y-1) wherever that is finite, also of x^0 at 0") {
  struct Point {
    double x, y, slope;
  };
  const std::vector<Point> points = {{0, 0, 0},  {0, 1, 1},   {0, 2, 0},      {3, 0, 0},
                                     {-2, 0, 0}, {-2, 3, 12}, {2, -1, -0.25}, {4, 0.5, 0.25}};
  for (const DType exponents : {sa::int32, sa::float32, sa::float64})
    for (const Point& p : points) {
      if (sa::is_integer(exponents) && p.y != std::floor(p.y)) continue;
      CAPTURE(p.x);
      CAPTURE(p.y);
      const Array y = sa::astype(sa::array({p.y}, sa::float64), exponents);
      const auto sum = [&](const Array& x) { return sa::sum(sa::power(x, y)); };
      CHECK(values(sa::grad(sum)(sa::array({p.x}, sa::float64))) == std::vector{p.slope});
    }
}

TEST_CASE("composed numbers: products of operands of many dimensions") {
  for (const std::size_t rank : {3, 28, 29, 30, 31, 32}) {
    CAPTURE(rank);
    Shape a = Shape::filled(rank, 1), b = a;
    a[0] = 2;
    b[rank - 1] = 3;
    const Array x = sa::reshape(sa::array({1.0f, 2.0f}), a),
                y = sa::reshape(sa::array({1.0f, 2.0f, 3.0f}), b);
    const Array product = sa::tensordot(x, y, static_cast<std::int64_t>(rank) - 1);
    CHECK(product.shape() == Shape{2, 3});
    CHECK(values(product) == std::vector<double>{1, 2, 3, 2, 4, 6});
  }
}

TEST_CASE("composed numbers: a function of two dtypes is that of both in the promoted one") {
  using F = Array (*)(const Array&, const Array&);
  const std::vector<std::pair<const char*, F>> functions = {
      {"add", [](const Array& a, const Array& b) { return a + b; }},
      {"subtract", [](const Array& a, const Array& b) { return a - b; }},
      {"multiply", [](const Array& a, const Array& b) { return a * b; }},
      {"divide", [](const Array& a, const Array& b) { return a / b; }},
      {"remainder", [](const Array& a, const Array& b) { return a % b; }},
      {"floor_divide", [](const Array& a, const Array& b) { return sa::floor_divide(a, b); }},
      {"maximum", [](const Array& a, const Array& b) { return sa::maximum(a, b); }},
      {"minimum", [](const Array& a, const Array& b) { return sa::minimum(a, b); }},
      {"power", [](const Array& a, const Array& b) { return sa::power(a, b); }},
      {"arctan2", [](const Array& a, const Array& b) { return sa::arctan2(a, b); }},
      {"less", [](const Array& a, const Array& b) { return a < b; }},
      {"equal", [](const Array& a, const Array& b) { return a == b; }},
      {"where", [](const Array& a, const Array& b) { return sa::where(a < b, a, b); }},
      {"matmul", [](const Array& a, const Array& b) { return sa::matmul(a, b); }},
      {"concatenate", [](const Array& a, const Array& b) {
         return sa::concatenate({a, b}, 0);
       }}};
  const std::vector<DType> dtypes = {sa::int8,    sa::int16,    sa::int32,   sa::int64,
                                     sa::uint8,   sa::uint16,   sa::uint32,  sa::uint64,
                                     sa::float16, sa::bfloat16, sa::float32, sa::float64};
  // More digits than 16-bit floats have, more than float16 holds, more than float32 has.
  const std::vector<double> first = {2049, 4099, 257, 100001, 7, 3, 70001, 16777217},
                            second = {2, 4100, 3, 33, 3, 0, 7, 2};
  const auto bits = [](const Array& x) {  // NaN is NaN
    std::vector<double> v = values(x);
    for (double& e : v)
      if (std::isnan(e)) e = -12345.5;
    return v;
  };
  for (const DType s : dtypes)
    for (const DType t : dtypes) {
      const Array a = sa::array(first).astype(s), b = sa::array(second).astype(t);
      const DType both = sa::promote_types(s, t);
      for (const auto& row : functions) {
        const auto& name = row.first;
        const auto& f = row.second;
        CAPTURE(name);
        CAPTURE(sa::name(s));
        CAPTURE(sa::name(t));
        const Array mixed = f(a, b), same = f(a.astype(both), b.astype(both));
        CHECK(mixed.dtype() == same.dtype());
        CHECK(bits(mixed) == bits(same));
      }
    }
}

TEST_CASE("composed numbers: randint draws in a program what it draws alone, up to the widest range") {
  struct Range {
    DType type;
    std::int64_t lo, hi;
  };
  const Array key = sa::random::key(42);
  for (const Range& r :
       {Range{sa::int8, -128, 128}, Range{sa::int16, -32768, 32768},
        Range{sa::int32, -2147483648L, 2147483648L}, Range{sa::int32, 0, 4294967296L},
        Range{sa::uint8, 0, 256}, Range{sa::uint32, 0, 4294967296L}, Range{sa::uint32, 0, 4294967295L},
        Range{sa::int32, 0, 2147483648L}, Range{sa::int64, 0, 4294967296L}}) {
    CAPTURE(sa::name(r.type));
    CAPTURE(r.hi);
    const auto draw = [&](const Array& k) { return sa::random::randint(k, {64}, r.lo, r.hi, r.type); };
    CHECK(values(sa::jit(draw)(key)) == values(draw(key)));
  }
}

TEST_CASE("composed numbers: pad takes the number as it is written, or refuses it") {
  constexpr std::int64_t large = 9007199254740993;
  CHECK(sa::pad(sa::zeros({1}, sa::int64), 1, large).to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{large, 0, large});
  for (const DType t : whole_dtypes) {
    CAPTURE(sa::name(t));
    CHECK(values(sa::pad(sa::zeros({1}, t), 1, 7)) == std::vector<double>{7, 0, 7});
    if (sa::itemsize(t) < 8) CHECK_THROWS_AS(sa::pad(sa::zeros({1}, t), 1, 5'000'000'000), sa::DTypeError);
  }
  CHECK_SAYS(sa::pad(sa::zeros({1}), 1, sa::zeros({}) + sa::ones({})),
             "pad: the value f32[] is computed. It must be a number. Pad with 0 and put it there with where.",
             sa::Error);
}

}  // namespace composed_numbers_test
