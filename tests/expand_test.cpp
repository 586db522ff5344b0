// Elementary functions in kernel IR: ulp bounds against long double, special values, messages.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "cpu/loops/interpreter.h"
#include "runtime/expand.h"
#include "scale.h"
#include "shardarray/error.h"

namespace expand_test {

using namespace shardarray;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity(),
                not_a_number = std::numeric_limits<float>::quiet_NaN();

using Unary = int (*)(KernelBuilder&, int);
using Binary = int (*)(KernelBuilder&, int, int);

/// f over whole arrays, by the interpreter.
template <class T, class F> std::vector<T> run(F emit, const std::vector<std::vector<T>>& in) {
  KernelBuilder b(1, 0);
  constexpr DType t = dtype_of<T>();
  std::vector<int> args, loads;
  for (std::size_t i = 0; i < in.size(); i++) args.push_back(b.arg({t}));
  const int out = b.arg({t, true});
  b.begin_stage(false);
  for (const int a : args) loads.push_back(b.load(a));
  b.store(out, emit(b, loads));
  const auto n = static_cast<std::int64_t>(in[0].size());
  std::vector<T> result(in[0].size());
  Loop::Item item;
  item.extents = {n};
  item.start = {0};
  std::vector<void*> bases;
  for (std::uint32_t a = 0; a <= in.size(); a++) {
    LoopArg arg;
    arg.ref = {a, 0};
    arg.strides = {1};
    arg.bytes = in[0].size() * sizeof(T);
    item.args.push_back(arg);
    bases.push_back(a < in.size() ? const_cast<T*>(in[a].data()) : result.data());
  }
  const LoopPlan plan(std::make_shared<Kernel>(b.finish()), item);
  plan.run(bases.data(), 0, n);
  return result;
}
template <class T> std::vector<T> run(Unary f, const std::vector<T>& x) {
  return run<T>([&](KernelBuilder& b, const std::vector<int>& v) { return f(b, v[0]); }, {x});
}
template <class T> std::vector<T> run(Binary f, const std::vector<T>& x, const std::vector<T>& y) {
  return run<T>([&](KernelBuilder& b, const std::vector<int>& v) { return f(b, v[0], v[1]); }, {x, y});
}

/// |got - want| in units of the last place of `want` as a T.
template <class T> double ulp_error(T got, long double want) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0 : 1e30;
  const T rounded = static_cast<T>(want);
  if (got == rounded) return 0;
  // An overflow counts as the first number that does not exist.
  const long double limit = std::ldexp(1.0L, std::numeric_limits<T>::max_exponent);
  const long double value =
      std::isinf(got) ? std::copysign(limit, static_cast<long double>(got)) : static_cast<long double>(got);
  if (std::isinf(want)) want = std::copysign(limit, want);
  int exponent = 0;
  std::frexp(std::fabs(want), &exponent);
  const int last = std::max(exponent - std::numeric_limits<T>::digits,
                            std::numeric_limits<T>::min_exponent - std::numeric_limits<T>::digits);
  return static_cast<double>(std::fabs(value - want) / std::ldexp(1.0L, last));
}

int scale() { return shardarray::testing::full_scale() ? 30 : 1; }
/// Every stride-th float32 pattern: all signs, exponents, zeros, infinities and NaN.
std::vector<float> whole_range(std::uint32_t count) {
  const std::uint64_t step = (std::uint64_t{1} << 32) / count | 1;
  std::vector<float> x;
  for (std::uint64_t p = 0; p < std::uint64_t{1} << 32; p += step)
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(p)));
  return x;
}
/// Evenly spaced, where the whole range has few patterns.
void add_range(std::vector<float>& x, double from, double to, int count) {
  for (int i = 0; i < count; i++) x.push_back(static_cast<float>(from + (to - from) * i / count));
}

/// Newton's method on erfc, which keeps its precision near 1.
long double erf_inv_reference(float x, float start) {
  if (!(std::fabs(x) < 1) || x == 0)
    return std::fabs(x) == 1 ? std::copysign(HUGE_VALL, static_cast<long double>(x))
           : x == 0          ? x
                             : not_a_number;
  const long double a = std::fabs(static_cast<long double>(x));
  long double y = std::fabs(start);
  for (int i = 0; i < 4; i++) {
    const long double error = a < 0.5L ? erfl(y) - a : (1 - a) - erfcl(y);
    y -= error * 0.886226925452758013649L * expl(y * y);
  }
  return std::copysign(y, static_cast<long double>(x));
}

struct UnaryCase {
  const char* name;
  Unary f;
  long double (*reference)(long double);
  double bound;     // ulp, as stated in expand.h
  double from, to;  // sampled densely as well
};
const UnaryCase unary_cases[] = {
    {"exp", expand::exp, expl, 1, -104, 89},
    {"expm1", expand::expm1, expm1l, 1.75, -20, 20},
    {"log", expand::log, logl, 1, 0, 3},
    {"log1p", expand::log1p, log1pl, 1.5, -1, 3},
    {"sin", expand::sin, sinl, 1.5, -20, 20},
    {"cos", expand::cos, cosl, 1.5, -20, 20},
    {"tan", expand::tan, tanl, 3, -20, 20},
    {"asin", expand::asin, asinl, 2.25, -1, 1},
    {"acos", expand::acos, acosl, 1.5, -1, 1},
    {"atan", expand::atan, atanl, 1.75, -5, 5},
    {"sinh", expand::sinh, sinhl, 2.25, -20, 20},
    {"cosh", expand::cosh, coshl, 1.75, -20, 20},
    {"tanh", expand::tanh, tanhl, 2.5, -10, 10},
    {"logistic", expand::logistic, [](long double x) { return 1 / (1 + expl(-x)); }, 2.5, -20, 20},
    {"erf", expand::erf, erfl, 1, -4, 4},
    {"erfc", expand::erfc, erfcl, 4, -4, 10.2},
    {"lgamma", expand::lgamma, lgammal, 0.51, -20, 20},
    {"exp2", expand::exp2, exp2l, 0.51, -150, 129},
    {"log2", expand::log2, log2l, 0.51, 0, 3},
    {"log10", expand::log10, log10l, 0.51, 0, 3},
    {"cbrt", expand::cbrt, cbrtl, 0.51, -20, 20},
    {"asinh", expand::asinh, asinhl, 0.51, -20, 20},
    {"acosh", expand::acosh, acoshl, 0.51, 1, 20},
    {"atanh", expand::atanh, atanhl, 0.51, -1, 1},
};

}  // namespace

TEST_CASE("expand: float32 functions keep their ulp bounds over the whole range") {
  for (const UnaryCase& c : unary_cases) {
    std::vector<float> x = whole_range(40000u * scale());
    add_range(x, c.from, c.to, 40000 * scale());
    const std::vector<float> got = run(c.f, x);
    double worst = 0;
    float at = 0;
    for (std::size_t i = 0; i < x.size(); i++) {
      const double e = ulp_error(got[i], c.reference(x[i]));
      if (e > worst) worst = e, at = x[i];
    }
    CAPTURE(std::string(c.name));
    CAPTURE(at);
    CHECK(worst <= c.bound);
    if (std::getenv("SHARDARRAY_SHOW_ULP")) MESSAGE(std::string(c.name) << " " << worst << " at " << at);
  }
}

TEST_CASE("expand: erf_inv of float32 keeps its bound") {
  std::vector<float> x = whole_range(4000u * scale());
  add_range(x, -1, 1, 10000 * scale());
  for (int i = 1; i < 2000; i++) x.push_back(1 - static_cast<float>(i) * 0x1p-24f);
  const std::vector<float> got = run(expand::erf_inv, x);
  double worst = 0, worst_near_one = 0;
  for (std::size_t i = 0; i < x.size(); i++) {
    const bool near_one = std::fabs(x[i]) >= 0.9f && std::fabs(x[i]) < 1;
    double& e = near_one ? worst_near_one : worst;
    e = std::max(e, ulp_error(got[i], erf_inv_reference(x[i], got[i])));
  }
  CHECK(worst <= 6);
  CHECK(worst_near_one <= 80);
  if (std::getenv("SHARDARRAY_SHOW_ULP")) MESSAGE("erf_inv " << worst << " near one " << worst_near_one);
}

TEST_CASE("expand: pow and atan2 of float32 keep their bounds") {
  std::vector<float> x, y;
  std::uint64_t r = 88172645463325252u;
  const auto random = [&] {
    r ^= r << 13, r ^= r >> 7, r ^= r << 17;
    return static_cast<std::uint32_t>(r >> 32);
  };
  for (int i = 0; i < 60000 * scale(); i++) {
    const float a = std::bit_cast<float>(random()), b = std::bit_cast<float>(random());
    x.push_back(a);
    // Half of the exponents are such that the power is finite.
    y.push_back(i % 2 ? b
                      : static_cast<float>(static_cast<std::int32_t>(random())) * 0x1p-31f * 90 /
                            std::log(std::fabs(a)));
  }
  for (int i = 0; i < 20000; i++) {
    x.push_back(static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 100);
    y.push_back(static_cast<float>(static_cast<int>(random() % 101) - 50) / (i % 2 ? 1 : 3));
  }
  const std::vector<float> power = run(expand::pow, x, y), angle = run(expand::atan2, x, y);
  double worst_power = 0, worst_angle = 0;
  for (std::size_t i = 0; i < x.size(); i++) {
    worst_power = std::max(worst_power, ulp_error(power[i], powl(x[i], y[i])));
    worst_angle = std::max(worst_angle, ulp_error(angle[i], atan2l(x[i], y[i])));
  }
  CHECK(worst_power <= 0.51);
  CHECK(worst_angle <= 1.75);
  if (std::getenv("SHARDARRAY_SHOW_ULP")) MESSAGE("pow " << worst_power << " atan2 " << worst_angle);
}

TEST_CASE("expand: hypot keeps its bound over the whole range, in both widths") {
  const std::vector<float> some = whole_range(400);
  std::vector<float> x, y;
  std::vector<double> wide_x, wide_y;
  for (const float a : some)
    for (const float b : some) {
      x.push_back(a), y.push_back(b);
      // exponents of float64: both near 2^k, k up to the limits
      wide_x.push_back(
          std::ldexp(static_cast<double>(std::remainder(a, 2.f)), static_cast<int>(x.size() % 2080) - 1056));
      wide_y.push_back(
          std::ldexp(static_cast<double>(std::remainder(b, 3.f)), static_cast<int>(x.size() % 2080) - 1056));
    }
  const std::vector<float> got = run(expand::hypot, x, y);
  const std::vector<double> wide = run(expand::hypot, wide_x, wide_y);
  double worst = 0, worst_wide = 0;
  for (std::size_t i = 0; i < x.size(); i++) {
    worst = std::max(worst, ulp_error(got[i], hypotl(x[i], y[i])));
    worst_wide = std::max(worst_wide, ulp_error(wide[i], hypotl(wide_x[i], wide_y[i])));
  }
  CHECK(worst <= 0.51);
  CHECK(worst_wide <= 2);
  if (std::getenv("SHARDARRAY_SHOW_ULP")) MESSAGE("hypot " << worst << " float64 " << worst_wide);
}

TEST_CASE("expand: special values are C's, signs of zero included") {
  const std::vector<float> special = {0.f,     -0.f,     1.f,   -1.f,        0.5f,    -0.5f,  2.f,
                                      -2.f,    3.f,      -3.f,  1e-45f,      -1e-45f, 1e-38f, -1e-38f,
                                      3.4e38f, -3.4e38f, 1e30f, -1e30f,      88.8f,   -88.8f, 104.f,
                                      -104.f,  inf,      -inf,  not_a_number};
  for (const UnaryCase& c : unary_cases) {
    const std::vector<float> got = run(c.f, special);
    for (std::size_t i = 0; i < special.size(); i++) {
      const long double want = c.reference(special[i]);
      CAPTURE(std::string(c.name));
      CAPTURE(special[i]);
      CHECK(ulp_error(got[i], want) <= c.bound);
      if (!std::isnan(want)) CHECK(std::signbit(got[i]) == std::signbit(want));
    }
  }
  std::vector<float> x, y;
  for (const float a : special) {
    for (const float b : special) x.push_back(a), y.push_back(b);
  }
  const std::vector<float> power = run(expand::pow, x, y), angle = run(expand::atan2, x, y);
  for (std::size_t i = 0; i < x.size(); i++) {
    CAPTURE(x[i]);
    CAPTURE(y[i]);
    CHECK(ulp_error(power[i], powl(x[i], y[i])) <= 0.51);
    CHECK(ulp_error(angle[i], atan2l(x[i], y[i])) <= 1.75);
    if (!std::isnan(power[i])) CHECK(std::signbit(power[i]) == std::signbit(powl(x[i], y[i])));
    if (!std::isnan(angle[i])) CHECK(std::signbit(angle[i]) == std::signbit(atan2l(x[i], y[i])));
  }
}

TEST_CASE("expand: float64 functions are within 2 ulp") {
  for (const UnaryCase& c : unary_cases) {
    std::vector<double> x;
    for (int i = 0; i <= 2000; i++) x.push_back(c.from + (c.to - c.from) * i / 2000);
    const std::vector<double> got = run(c.f, x);
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); i++) worst = std::max(worst, ulp_error(got[i], c.reference(x[i])));
    CAPTURE(std::string(c.name));
    const bool loose = std::set<std::string>{"logistic", "lgamma", "erfc"}.contains(c.name);
    const bool area = std::set<std::string>{"asinh", "acosh", "atanh"}.contains(c.name);
    CHECK(worst <= (loose ? 5 : area ? 3 : 2));
    if (std::getenv("SHARDARRAY_SHOW_ULP")) MESSAGE(std::string(c.name) << " float64 " << worst);
  }
  // erf_inv(erf(x)) = x, away from where erf is flat.
  std::vector<double> x, y;
  for (int i = -400; i <= 400; i++) x.push_back(i / 100.0 + 0.001);
  for (const double v : x) y.push_back(std::erf(v));
  const std::vector<double> back = run(expand::erf_inv, y);
  for (std::size_t i = 0; i < x.size(); i++) {
    const double slope = 2 / std::sqrt(M_PI) * std::exp(-x[i] * x[i]);
    CHECK(std::fabs(back[i] - x[i]) <= 4e-16 * std::fabs(x[i]) * 4 + 1.2e-16 / slope);
  }
  const std::vector<double> ends = run(expand::erf_inv, std::vector<double>{1, -1, 0, 1.5});
  CHECK(ends[0] == inf);
  CHECK(ends[1] == -inf);
  CHECK(ends[2] == 0);
  CHECK(std::isnan(ends[3]));
}

TEST_CASE("expand: other types are refused") {
  KernelBuilder b(0, 0);
  b.begin_stage(false);
  const int i = b.constant(int32, 1), f = b.constant(float32, 1), d = b.constant(float64, 1);
  CHECK_THROWS_WITH(
      expand::exp(b, i),
      "expand: exp of a i32 value. Elementary functions take float32 and float64. Cast it first.");
  CHECK_THROWS_WITH(expand::pow(b, f, d),
                    "expand: pow of f32 and f64 values. Elementary functions take two float32 or two "
                    "float64. Cast them first.");
}

}  // namespace expand_test
