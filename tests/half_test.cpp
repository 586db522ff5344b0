// float16 and bfloat16: every bit pattern, roundings, JAX's results (data/halves.json), shardings.
#include <cmath>

#include "golden.h"
#include "program_of.h"

namespace half_test {

namespace sa = shardarray;
using sa::Array;
using sa::DType;

namespace {

struct Format {
  DType type;
  int mantissa, least;  // bits of the fraction; exponent of the smallest normal number
  double largest;
};
const Format formats[] = {{DType::float16, 10, -14, 65504},
                          {DType::bfloat16, 7, -126, std::ldexp(255.0 / 128, 127)}};

Array all_patterns() { return sa::arange(65536).astype(sa::uint16); }

// The nearest number of the format, ties to even.
double nearest(const Format& f, double v) {
  if (v == 0 || !std::isfinite(v)) return v;
  const double step = std::ldexp(1.0, std::max(std::ilogb(v), f.least) - f.mantissa);
  const double r = std::nearbyint(v / step) * step;
  return std::abs(r) > f.largest ? std::copysign(INFINITY, v) : r;
}
std::vector<double> values(const Array& x) { return sa::testing::values(x.astype(sa::float64)); }

void check_rounding(const Format& f, const std::vector<double>& v, DType from) {
  const Array x = sa::array(v, sa::Shape{static_cast<std::int64_t>(v.size())}, from);
  const std::vector<double> source = values(x), got = values(x.astype(f.type));
  int wrong = 0;
  for (std::size_t k = 0; k < v.size(); k++) {
    const double want = nearest(f, source[k]);
    wrong += got[k] != want && !(std::isnan(got[k]) && std::isnan(want));
  }
  CHECK(wrong == 0);
}

const std::map<std::string, Array (*)(const Array&)> functions = {
    {"abs", [](const Array& x) { return sa::abs(x); }},
    {"sign", [](const Array& x) { return sa::sign(x); }},
    {"sqrt", [](const Array& x) { return sa::sqrt(x); }},
    {"reciprocal", [](const Array& x) { return 1 / x; }},
    {"exp", [](const Array& x) { return sa::exp(x); }},
    {"log", [](const Array& x) { return sa::log(x); }},
    {"sin", [](const Array& x) { return sa::sin(x); }},
    {"tanh", [](const Array& x) { return sa::tanh(x); }},
    {"floor", [](const Array& x) { return sa::floor(x); }},
    {"rint", [](const Array& x) { return sa::round(x); }},
    {"lax.rsqrt", [](const Array& x) { return sa::rsqrt(x); }},
    {"lax.erf", [](const Array& x) { return sa::erf(x); }},
    {"nn.relu", [](const Array& x) { return sa::relu(x); }},
    {"nn.sigmoid", [](const Array& x) { return sa::sigmoid(x); }},
    {"nn.gelu", [](const Array& x) { return sa::gelu(x); }},
    {"sum_bf16", [](const Array& x) { return sa::sum(x); }},
};

}  // namespace

TEST_CASE("halves: every bit pattern has its value, and its value has that pattern") {
  for (const Format& f : formats) {
    const Array bits = all_patterns(), x = sa::bitcast(bits, f.type);
    const std::vector<double> got = values(x), back = values(sa::bitcast(x + 0, sa::uint16));
    const int exponents = (1 << (15 - f.mantissa)) - 1;
    int wrong = 0;
    for (int p = 0; p < 65536; p++) {
      const int fraction = p & ((1 << f.mantissa) - 1), exponent = p >> f.mantissa & exponents;
      double want = exponent == 0
                        ? std::ldexp(fraction, f.least - f.mantissa)
                        : std::ldexp(fraction + (1 << f.mantissa), exponent - 1 + f.least - f.mantissa);
      if (exponent == exponents) want = fraction ? NAN : INFINITY;
      if (p >> 15) want = -want;
      const auto k = static_cast<std::size_t>(p);
      if (std::isnan(want)) wrong += !std::isnan(got[k]);
      else wrong += got[k] != want || (p != 0x8000 && back[k] != p);  // -0 + 0 is 0
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("halves: numbers are rounded once, to nearest even, from every type") {
  for (const Format& f : formats) {
    std::vector<double> v;  // numbers, the middles between neighbours, and what lies just beside both
    const std::vector<double> numbers = values(sa::bitcast(all_patterns(), f.type));
    for (std::size_t k = 0; k + 1 < numbers.size(); k += 3) {
      if (!std::isfinite(numbers[k]) || !std::isfinite(numbers[k + 1])) continue;
      const double middle = (numbers[k] + numbers[k + 1]) / 2;
      for (const double x : {numbers[k], middle}) {
        v.insert(v.end(), {x, x * (1 + 1e-9), x * (1 - 1e-9), x * (1 + 1e-6), x * (1 - 1e-6)});
      }
    }
    v.insert(v.end(), {65519.99, 65520, 65536, 1e30, 3.39e38, 3.4e38, -65520, INFINITY, -INFINITY, NAN, 1e-8,
                       2e-8, 3e-8});
    check_rounding(f, v, DType::float32);
    check_rounding(f, v, DType::float64);
    std::vector<double> whole;
    for (std::int64_t k = -70000; k < 70000; k += 7) whole.push_back(static_cast<double>(k));
    for (int e = 0; e < 31; e++)
      for (int d = -2; d < 3; d++) whole.push_back(std::ldexp(1, e) + std::ldexp(1, std::max(e - 9, 0)) + d);
    check_rounding(f, whole, DType::int32);
    check_rounding(f, whole, DType::int64);
  }
  // Between two numbers, beside the middle by what float64 does not hold.
  const std::int64_t tie = (std::int64_t{1} << 62) + (std::int64_t{1} << 54), large = std::int64_t{1} << 62,
                     next = large + (std::int64_t{1} << 55);
  const Array whole = sa::array(std::vector<std::int64_t>{tie - 1, tie, tie + 1, -tie + 1, -tie, -tie - 1});
  const auto rounded = [](std::initializer_list<std::int64_t> v) {
    return std::vector<double>(v.begin(), v.end());
  };
  CHECK(values(whole.astype(DType::bfloat16)) == rounded({large, large, next, -large, -large, -next}));
  const Array natural =
      sa::array(std::vector<std::uint64_t>{2 * std::uint64_t(tie) - 1, 2 * std::uint64_t(tie) + 1});
  CHECK(values(natural.astype(DType::bfloat16)) ==
        std::vector<double>{2.0 * double(large), 2.0 * double(next)});
}

TEST_CASE("halves: JAX's results") {
  int seen = 0;
  const golden::Json all = golden::load("halves.json");
  for (const golden::Json& c : all["cases"]) {
    const std::string name = c["name"];
    const std::string text = name + " " + c["attrs"].dump() + " " + c["inputs"].dump();
    CAPTURE(text);
    const Array x = golden::array(c["inputs"][0]);
    const Array got = name == "astype"        ? x.astype(golden::dtype_named(c["attrs"]["to"]))
                      : name == "matmul_bf16" ? sa::matmul(x, golden::array(c["inputs"][1]))
                                              : functions.at(name)(x);
    REQUIRE(got.dtype() == golden::dtype_named(c["outputs"]["dtype"]));
    const double step = x.dtype() == DType::float16 ? 1e-3 : 8e-3;
    if (c["attrs"]["tol"] == "exact") CHECK(golden::close(got, c["outputs"], 1e-7, 1e-44));
    else
      CHECK(golden::close(got, c["outputs"], 2 * step,
                          name == "nn.gelu" ? 2 * step : 1e-7));  // 1 + tanh cancels
    seen++;
  }
  CHECK(seen == 43);
}

TEST_CASE("halves: sums and products run in float32 and are rounded once") {
  for (const Format& f : formats) {
    const Array x = sa::random::normal(sa::random::key(0), {60, 300}).astype(f.type),
                y = sa::random::normal(sa::random::key(1), {300, 40}).astype(f.type);
    const auto exact = [](const Array& v) { return v.astype(sa::float64); };
    const auto check = [&](const Array& got, const Array& want) {
      REQUIRE(got.dtype() == f.type);
      const std::vector<double> g = values(got), w = values(want);
      double worst = 0;  // in steps of the format
      for (std::size_t k = 0; k < g.size(); k++)
        worst = std::max(worst, std::abs(g[k] - w[k]) / std::max(std::abs(w[k]), 0.1));
      CHECK(worst < 0.501 * std::ldexp(1.0, -f.mantissa));
    };
    check(sa::sum(x, 1), sa::sum(exact(x), 1));
    check(sa::mean(x, 0), sa::mean(exact(x), 0));
    check(sa::max(x, 0), sa::max(exact(x), 0));
    check(sa::matmul(x, y), sa::matmul(exact(x), exact(y)));
  }
}

TEST_CASE("halves: the same numbers on eight devices, under grad, vmap and pmap") {
  const auto loss = [](const Array& w, const Array& x) {
    return sa::mean(sa::square(sa::tanh(sa::matmul(x, w))));
  };
  for (const Format& f : formats) {
    const Array w = sa::random::normal(sa::random::key(0), {16, 24}).astype(f.type),
                x = sa::random::normal(sa::random::key(1), {32, 16}).astype(f.type);
    const sa::reproducible mode(true);
    const Array want = sa::jit(sa::grad(loss))(w, x);
    REQUIRE(want.dtype() == f.type);
    for (const sa::P& spec : {sa::P("x"), sa::P(sa::none, "x")}) {
      const Array cut = sa::device_put(x, program_test::on_xy(spec));
      CHECK(values(sa::jit(sa::grad(loss))(w, cut)) == values(want));
      CHECK(values(sa::take(cut, sa::array({3, 1, 31}))) == values(sa::take(x, sa::array({3, 1, 31}))));
    }
    const Array rows = x.reshape({8, 4, 16});
    const auto normalise = [](const Array& v) { return v / sa::psum(v, "i"); };
    const Array by_pmap = sa::pmap(normalise, {.axis_name = "i"})(rows),
                by_vmap = sa::vmap(normalise, {.axis_name = "i"})(rows);
    CHECK(values(by_pmap) == values(by_vmap));
    // against differences of the float64 function
    const Array exact = sa::grad(loss)(w.astype(sa::float64), x.astype(sa::float64));
    CHECK(sa::max(sa::abs(want.astype(sa::float64) - exact)).item<double>() < std::ldexp(2.0, -f.mantissa));
  }
}

}  // namespace half_test
