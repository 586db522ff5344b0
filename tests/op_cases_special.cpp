// Rows of op_cases.h: functions of powers.cpp, special.cpp, parts.cpp and activations.cpp, divisors and counts of bits.
#include <bit>

#include "op_cases.h"
#include "shardarray/compare.h"
#include "special_host.h"

namespace shardarray::testing {

inline double relu6_of_host(double x) { return std::clamp(x, 0.0, 6.0); }
inline double elu_of_host(double x, double alpha) { return x > 0 ? x : alpha * std::expm1(x); }

Cases power_cases() {
  using D = double;
  Cases c;
  c.push_back(unary_case(
      "exp2", exp2, [](D x) { return std::exp2(x); }, values(-3, 3)));
  c.push_back(unary_case(
      "log2", log2, [](D x) { return std::log2(x); }, values(0.3, 4)));
  c.push_back(unary_case(
      "log10", log10, [](D x) { return std::log10(x); }, values(0.3, 4)));
  c.push_back(unary_case(
      "cbrt", cbrt, [](D x) { return std::cbrt(x); }, values(0.3, 4)));
  c.push_back(unary_case(
      "cbrt negative", cbrt, [](D x) { return std::cbrt(x); }, values(-4, -0.3)));
  c.push_back(unary_case(
      "arcsinh", arcsinh, [](D x) { return std::asinh(x); }, values(-3, 3)));
  c.push_back(unary_case(
      "arccosh", arccosh, [](D x) { return std::acosh(x); }, values(1.2, 4)));
  c.push_back(unary_case(
      "arctanh", arctanh, [](D x) { return std::atanh(x); }, values(-0.8, 0.8)));
  c.push_back(unary_case(
      "degrees", degrees, [](D x) { return x * 180 / std::numbers::pi; }, values(-4, 4)));
  c.push_back(unary_case(
      "radians", radians, [](D x) { return x * std::numbers::pi / 180; }, values(-400, 400)));
  c.push_back(binary_case(
      "hypot", hypot, [](D a, D b) { return std::hypot(a, b); }, values(-2, 2), values(0.5, 2)));
  c.push_back(binary_case(
      "logaddexp", logaddexp, [](D a, D b) { return std::log(std::exp(a) + std::exp(b)); }, values(-2, 2),
      values(-2, 2), true, 1e-6));
  c.push_back(binary_case(
      "logaddexp2", logaddexp2, [](D a, D b) { return std::log2(std::exp2(a) + std::exp2(b)); },
      values(-2, 2), values(-2, 2), true, 1e-6));
  c.push_back(binary_case(
      "float_power", float_power, [](D a, D b) { return std::pow(a, b); }, values(0.3, 2), values(-2, 2),
      true, 2e-6));
  c.push_back(binary_case(
      "float_power int", float_power, [](D a, D b) { return std::pow(a, b); }, whole(1, 3), whole(-3, 3),
      false, 1e-6));
  return c;
}

Cases special_cases() {
  using D = double;
  Cases c;
  c.push_back(unary_case(
      "lgamma", lgamma, [](D x) { return std::lgamma(x); }, values(0.3, 4)));
  c.push_back(unary_case(
      "digamma", digamma, [](D x) { return D(digamma_of(x)); }, values(0.3, 4)));
  c.push_back(unary_case(
      "digamma negative", digamma, [](D x) { return D(digamma_of(x)); }, values(-2.8, -2.2)));
  c.push_back(unary_case(
      "i0", i0, [](D x) { return D(bessel_i0_of(x)); }, values(-3, 3)));
  c.push_back(unary_case(
      "i1", i1, [](D x) { return D(bessel_i_of(1, x)); }, values(-3, 3)));
  c.push_back(unary_case(
      "i0e", i0e, [](D x) { return D(bessel_i_of(0, x)) * std::exp(-std::abs(x)); }, values(0.2, 4)));
  c.push_back(unary_case(
      "i1e", i1e, [](D x) { return D(bessel_i_of(1, x)) * std::exp(-std::abs(x)); }, values(-4, -0.2)));
  c.push_back(unary_case(
      "gamma", [](const Array& x) { return gamma(x); }, [](D x) { return std::tgamma(x); }, values(0.3, 4),
      true, 1e-6));
  c.push_back(unary_case(
      "gamma negative", [](const Array& x) { return gamma(x); }, [](D x) { return std::tgamma(x); },
      values(-2.8, -2.2), true, 1e-6));
  c.push_back(unary_case(
      "exp1", exp1, [](D x) { return D(exp1_of(x)); }, values(0.2, 4)));
  c.push_back(unary_case(
      "ndtr", ndtr, [](D x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }, values(-3, 3)));
  c.push_back(unary_case(
      "ndtri", ndtri, [](D x) { return D(normal_quantile(x)); }, values(0.05, 0.95), true, 2e-6));
  c.push_back(unary_case(
      "entr", entr, [](D x) { return -x * std::log(x); }, values(0.1, 2)));
  c.push_back(binary_case(
      "xlogy", xlogy, [](D a, D b) { return a * std::log(b); }, values(0.2, 2), values(0.3, 3)));
  c.push_back(binary_case(
      "xlog1py", xlog1py, [](D a, D b) { return a * std::log1p(b); }, values(0.2, 2), values(-0.5, 3)));
  c.push_back(unary_case(
      "logit", logit, [](D x) { return std::log(x / (1 - x)); }, values(0.05, 0.95), true, 1e-6));
  c.push_back(unary_case(
      "log_ndtr", log_ndtr, [](D x) { return std::log(0.5 * std::erfc(-x / std::numbers::sqrt2)); },
      values(-14, 7), true, 1e-6));
  c.push_back(binary_case(
      "betaln", betaln, [](D a, D b) { return std::lgamma(a) + std::lgamma(b) - std::lgamma(a + b); },
      values(0.3, 4), values(0.3, 4), true, 2e-6));
  c.push_back(unary_case(
      "multigammaln", [](const Array& x) { return multigammaln(x, 3); },
      [](D x) {
        return 1.5 * std::log(std::numbers::pi) + std::lgamma(x) + std::lgamma(x - 0.5) + std::lgamma(x - 1);
      },
      values(1.3, 4), true, 2e-6));
  c.push_back(unary_case(
      "factorial", factorial, [](D x) { return std::tgamma(x + 1); }, values(0.3, 4), true, 2e-6));
  c.push_back(binary_case(
      "rel_entr", rel_entr, [](D a, D b) { return a * std::log(a / b); }, values(0.2, 2), values(0.3, 3)));
  c.push_back(binary_case(
      "kl_div", kl_div, [](D a, D b) { return a * std::log(a / b) - a + b; }, values(0.2, 2), values(0.3, 3),
      true, 1e-6));
  c.push_back(unary_case(
      "log1mexp", log1mexp, [](D x) { return std::log(-std::expm1(-x)); }, values(0.1, 4), true, 1e-6));
  return c;
}

Cases part_cases() {
  using D = double;
  Cases c;
  c.push_back(unary_case(
      "signbit", signbit, [](D x) { return D(std::signbit(x)); }, kinked(-2, 2), false, 0));
  c.push_back(binary_case(
      "copysign", copysign, [](D a, D b) { return std::copysign(a, b); }, kinked(-2, 2), kinked(-2, 2), true,
      0));
  c.push_back(binary_case(
      "nextafter", nextafter, [](D a, D b) { return D(std::nextafter(float(a), float(b))); }, values(-2, 2),
      values(-2, 2), false, 0));
  c.push_back(binary_case(
      "heaviside", heaviside, [](D a, D b) { return a > 0   ? 1
                                                    : a < 0 ? 0
                                                            : b; },
      whole(-2, 2, DType::float32), values(-2, 2), false, 0));
  c.push_back(unary_case(
      "positive", positive, [](D x) { return x; }, values(-2, 2), true, 0));
  c.push_back(unary_case(
      "rint", rint, [](D x) { return std::nearbyint(x); }, values(-4, 4), false, 0));
  c.push_back(unary_case(
      "isposinf", [](const Array& x) { return isposinf(1.0 / floor(x)); },
      [](D x) { return D(std::floor(x) == 0); }, kinked(-2, 2)));
  c.push_back(unary_case(
      "isneginf", [](const Array& x) { return isneginf(-1.0 / floor(x)); },
      [](D x) { return D(std::floor(x) == 0); }, kinked(-2, 2)));
  c.push_back(unary_case(
      "nan_to_num", [](const Array& x) { return nan_to_num(log(x), {.nan = 2}); },
      [](D x) { return x > 0 ? std::log(x) : 2; }, kinked(-2, 2)));
  c.push_back(binary_case(
      "fmax", fmax, [](D a, D b) { return std::fmax(a, b); }, kinked(-2, 2), values(3, 4)));
  c.push_back(binary_case(
      "fmin", fmin, [](D a, D b) { return std::fmin(a, b); }, kinked(-2, 2), values(3, 4)));
  c.push_back(binary_case(
      "fmod", fmod, [](D a, D b) { return std::fmod(a, b); }, values(-9, -7), values(5, 6), true, 1e-6));
  c.push_back(unary_case(
      "modf", [](const Array& x) { return modf(x).first; }, [](D x) { return x - std::trunc(x); },
      kinked(-4, 4)));
  c.push_back(unary_case(
      "frexp", [](const Array& x) { return frexp(x).first; },
      [](D x) {
        int e = 0;
        return std::frexp(x, &e);
      },
      values(2.1, 3.9)));
  c.push_back(unary_case(
      "frexp exponent", [](const Array& x) { return frexp(x).second; },
      [](D x) {
        int e = 0;
        std::frexp(x, &e);
        return D(e);
      },
      values(-9, 9), false, 0));
  c.push_back(binary_case(
      "ldexp", ldexp, [](D a, D b) { return std::ldexp(a, int(b)); }, values(-2, 2), whole(-5, 5)));
  c.push_back(unary_case(
      "select",
      [](const Array& x) {
        return select({x<-1, x> 1}, {-x, x * x}, x);
      },
      [](D x) { return x < -1  ? -x
                       : x > 1 ? x * x
                               : x; }, kinked(-3, 3)));
  return c;
}

Cases count_cases() {
  using D = double;
  using I = std::int32_t;
  Cases c;
  const OpInput small = whole(-9, 9);
  c.push_back(binary_case(
      "divmod quotient", [](const Array& a, const Array& b) { return divmod(a, b).first; },
      [](D a, D b) { return b == 0 ? -1 : std::floor(a / b); }, small, small, false, 0));
  c.push_back(binary_case(
      "divmod rest", [](const Array& a, const Array& b) { return divmod(a, b).second; },
      [](D a, D b) { return b == 0 ? a : a - std::floor(a / b) * b; }, small, small, false, 0));
  c.push_back(binary_case(
      "rem int", rem, [](D a, D b) { return b == 0 ? a : std::fmod(a, b); }, small, small, false, 0));
  c.push_back(binary_case(
      "gcd", gcd, [](D a, D b) { return D(std::gcd(I(a), I(b))); }, whole(-99, 99), whole(-99, 99), false,
      0));
  c.push_back(binary_case(
      "gcd unsigned", gcd, [](D a, D b) { return D(std::gcd(I(a), I(b))); }, whole(0, 255, DType::uint8),
      whole(0, 255, DType::uint8), false, 0));
  c.push_back(binary_case(
      "lcm", lcm, [](D a, D b) { return D(std::lcm(I(a), I(b))); }, whole(-99, 99), whole(-99, 99), false,
      0));
  c.push_back(unary_case(
      "population_count", population_count, [](D a) { return D(std::popcount(std::uint32_t(I(a)))); },
      whole(-99, 99), false, 0));
  c.push_back(unary_case(
      "population_count int8", population_count, [](D a) { return D(std::popcount(std::uint8_t(I(a)))); },
      whole(-99, 99, DType::int8), false, 0));
  c.push_back(unary_case(
      "bitwise_count", bitwise_count, [](D a) { return D(std::popcount(std::uint32_t(std::abs(a)))); },
      whole(-99, 99), false, 0));
  c.push_back(unary_case(
      "clz", clz, [](D a) { return D(std::countl_zero(std::uint32_t(I(a)))); }, whole(-9, 9999), false, 0));
  c.push_back(binary_case(
      "isclose", [](const Array& a, const Array& b) { return isclose(a, b, {.atol = 1}); },
      [](D a, D b) { return D(std::abs(a - b) <= 1 + 1e-5 * std::abs(b)); }, small, small, false, 0));
  return c;
}

Cases activation_cases() {
  using D = double;
  Cases c;
  c.push_back(unary_case("softplus", softplus, softplus_of_host, values(-4, 4), true, 1e-6));
  c.push_back(unary_case(
      "log_sigmoid", log_sigmoid, [](D x) { return -softplus_of_host(-x); }, values(-4, 4), true, 1e-6));
  c.push_back(unary_case(
      "soft_sign", soft_sign, [](D x) { return x / (1 + std::abs(x)); }, kinked(-4, 4)));
  c.push_back(unary_case(
      "mish", mish, [](D x) { return x * std::tanh(softplus_of_host(x)); }, values(-4, 4), true, 1e-6));
  c.push_back(unary_case("relu6", relu6, relu6_of_host, kinked(-3, 9)));
  c.push_back(unary_case(
      "elu", [](const Array& x) { return elu(x); }, [](D x) { return elu_of_host(x, 1); }, kinked(-3, 3)));
  c.push_back(binary_case("elu alpha", elu, elu_of_host, kinked(-3, 3), values(0.5, 2), true, 1e-6));
  c.push_back(unary_case(
      "selu", selu, [](D x) { return 1.0507009873554805 * elu_of_host(x, 1.6732632423543772); },
      kinked(-3, 3), true, 1e-6));
  c.push_back(binary_case(
      "celu", celu, [](D x, D alpha) { return x > 0 ? x : alpha * std::expm1(x / alpha); }, kinked(-3, 3),
      values(0.5, 2), true, 1e-6));
  c.push_back(unary_case(
      "leaky_relu", [](const Array& x) { return leaky_relu(x); }, [](D x) { return x >= 0 ? x : 0.01 * x; },
      kinked(-3, 3)));
  c.push_back(binary_case(
      "leaky_relu slope", leaky_relu, [](D x, D slope) { return x >= 0 ? x : slope * x; }, kinked(-3, 3),
      values(0, 1)));
  c.push_back(unary_case(
      "hard_tanh", hard_tanh, [](D x) { return std::clamp(x, -1.0, 1.0); }, kinked(-3, 3)));
  c.push_back(unary_case(
      "hard_tanh int", hard_tanh, [](D x) { return std::clamp(x, -1.0, 1.0); }, whole(-3, 3), false, 0));
  c.push_back(unary_case(
      "hard_sigmoid", hard_sigmoid, [](D x) { return relu6_of_host(x + 3) / 6; }, kinked(-5, 5)));
  c.push_back(unary_case(
      "hard_silu", hard_silu, [](D x) { return x * relu6_of_host(x + 3) / 6; }, kinked(-5, 5)));
  c.push_back(unary_case(
      "squareplus", [](const Array& x) { return squareplus(x); },
      [](D x) { return (x + std::sqrt(x * x + 4)) / 2; }, values(-4, 4)));
  c.push_back({"glu",
               [](std::span<const Array> x) { return glu(x[0]); },
               [](const Hosts& x) {
                 Shape half = x[0].shape;
                 half.back() /= 2;
                 return build(half, [&](const Shape& i) {
                   Shape gate = i;
                   gate.back() += half.back();
                   return read(x[0], i) / (1 + std::exp(-read(x[0], gate)));
                 });
               },
               {{{10, 6}, -4, 4}},
               true,
               1e-6});
  c.push_back({"standardize",
               [](std::span<const Array> x) { return standardize(x[0]); },
               [](const Hosts& x) {
                 const auto mean_of = [](const Numbers& v) {
                   return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
                 };
                 return along(x[0], 1, [&](const Numbers& v) {
                   const double mean = mean_of(v);
                   Numbers squares, r;
                   for (const double e : v) squares.push_back((e - mean) * (e - mean));
                   for (const double e : v) r.push_back((e - mean) / std::sqrt(mean_of(squares) + 1e-5));
                   return r;
                 });
               },
               {{{10, 6}}},
               true,
               5e-6});
  return c;
}

}  // namespace shardarray::testing
