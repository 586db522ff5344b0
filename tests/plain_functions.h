// More of plain_scalars.h: the elementwise operations of powers.cpp and special.cpp, divisors and bit counts.
#pragma once
#include <bit>

#include "plain_scalar.h"
#include "special_host.h"

namespace shardarray::testing::plain {

inline std::vector<Scalar> power_scalars() {
  const Range any{-4, 4}, positive{0.2, 6}, small{-2, 2}, away{0.5, 3};
  return {smooth(
              "exp2", small, [](In x) { return exp2(x[0]); }, [](R x) { return std::exp2(x[0]); }),
          smooth(
              "log2", positive, [](In x) { return log2(x[0]); }, [](R x) { return std::log2(x[0]); }),
          smooth(
              "log10", positive, [](In x) { return log10(x[0]); }, [](R x) { return std::log10(x[0]); }),
          smooth(
              "cbrt", positive, [](In x) { return cbrt(x[0]); }, [](R x) { return std::cbrt(x[0]); }),
          smooth(
              "asinh", any, [](In x) { return asinh(x[0]); }, [](R x) { return std::asinh(x[0]); }),
          smooth(
              "acosh", {1.2, 6}, [](In x) { return acosh(x[0]); }, [](R x) { return std::acosh(x[0]); }),
          smooth(
              "atanh", {-0.9, 0.9}, [](In x) { return atanh(x[0]); }, [](R x) { return std::atanh(x[0]); }),
          {"hypot",
           "hypot",
           kFloating,
           {any, away},
           [](In x) { return hypot(x[0], x[1]); },
           [](R x) { return std::hypot(x[0], x[1]); },
           nullptr,
           2},
          {"logaddexp",
           "logaddexp",
           kFloating,
           {{0.5, 4}, {0.5, 4}},
           [](In x) { return logaddexp(x[0], x[1]); },
           [](R x) {
             const double most = std::max(x[0], x[1]);
             return most + std::log1p(std::exp(std::min(x[0], x[1]) - most));
           },
           nullptr,
           4}};
}
inline std::vector<Scalar> special_scalars() {
  return {
      smooth(
          "lgamma", {2.5, 6}, [](In x) { return lgamma(x[0]); }, [](R x) { return std::lgamma(x[0]); }, 8),
      smooth(
          "polygamma", {2, 6}, [](In x) { return digamma(x[0]); },
          [](R x) { return static_cast<double>(digamma_of(x[0])); }, 16),
      smooth(
          "bessel_i", {-4, 4}, [](In x) { return i0(x[0]); },
          [](R x) { return static_cast<double>(bessel_i0_of(x[0])); }, 8),
      smooth(
          "bessel_ie", {0.1, 4}, [](In x) { return i1e(x[0]); },
          [](R x) { return static_cast<double>(bessel_i_of(1, x[0])) * std::exp(-x[0]); }, 8),
      smooth(
          "gamma", {0.5, 4}, [](In x) { return gamma(x[0]); }, [](R x) { return std::tgamma(x[0]); }, 16),
      smooth(
          "exp1", {0.2, 4}, [](In x) { return exp1(x[0]); },
          [](R x) { return static_cast<double>(exp1_of(x[0])); }, 8),
      smooth(
          "ndtri", {0.05, 0.4}, [](In x) { return ndtri(x[0]); },
          [](R x) { return static_cast<double>(normal_quantile(x[0])); }, 16)};
}

inline std::uint64_t pattern(Wide x, DType t) {
  const auto low = static_cast<std::uint64_t>(x);
  return width(t) == 64 ? low : low & ((std::uint64_t{1} << width(t)) - 1);
}
inline std::vector<Scalar> count_scalars() {
  const Range any{-4, 4};
  return {{"gcd",
           "gcd",
           kIntegers,
           {any, any},
           [](In x) { return gcd(x[0], x[1]); },
           nullptr,
           [](W x, DType) {
             Wide a = x[0] < 0 ? -x[0] : x[0], b = x[1] < 0 ? -x[1] : x[1];
             while (b != 0) a = std::exchange(b, a % b);
             return a;
           }},
          {"population_count",
           "population_count",
           kIntegers,
           {any},
           [](In x) { return population_count(x[0]); },
           nullptr,
           [](W x, DType t) { return static_cast<Wide>(std::popcount(pattern(x[0], t))); }},
          {"clz",
           "clz",
           kIntegers,
           {any},
           [](In x) { return clz(x[0]); },
           nullptr,
           [](W x, DType t) {
             return static_cast<Wide>(std::countl_zero(pattern(x[0], t)) - (64 - static_cast<int>(width(t))));
           }}};
}

}  // namespace shardarray::testing::plain
