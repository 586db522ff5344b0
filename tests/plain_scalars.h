// The elementwise operations, each with its plain definition: in double for floating types, in 128 bits for integers.
#pragma once
#include "plain_functions.h"

namespace shardarray::testing {

namespace plain {

inline Wide times(const Wide* x, DType t) {  // both modulo 2^64 first, so that nothing overflows
  return wrapped(t, static_cast<Wide>(static_cast<std::int64_t>(x[0])) *
                        static_cast<Wide>(static_cast<std::int64_t>(x[1])));
}
inline Wide floor_quotient(Wide a, Wide b) {
  if (b == 0) return -1;
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
inline Wide power_of(const Wide* x, DType t) {
  Wide r = 1;
  for (Wide k = 0; k < x[1]; k++) {
    const Wide factors[] = {r, x[0]};
    r = times(factors, t);
  }
  return r;
}
inline Wide shift_left(const Wide* x, DType t) {
  const Wide low = static_cast<std::int64_t>(x[0]);  // modulo 2^64
  return x[1] < 0 || x[1] >= width(t) ? 0
                                      : wrapped(t, low * (static_cast<Wide>(1) << static_cast<int>(x[1])));
}
inline Wide shift_right(const Wide* x, DType t) {
  const bool beyond = x[1] < 0 || x[1] >= width(t);
  return beyond ? (x[0] < 0 ? -1 : 0) : x[0] >> static_cast<int>(x[1]);
}
inline double share_of_one(double x) { return 1 / (1 + std::exp(-x)); }
// Newton's method on erf.
inline double inverse_erf(double y) {
  double x = y;
  for (int k = 0; k < 60; k++) x -= (std::erf(x) - y) / (1.1283791670955126 * std::exp(-x * x));
  return x;
}
inline double modulo(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

inline std::vector<Scalar> sign_scalars() {
  const Range any{-4, 4};
  return {{"neg",
           "neg",
           kNumbers,
           {any},
           [](In x) { return -x[0]; },
           [](R x) { return -x[0]; },
           [](W x, DType) { return -x[0]; },
           0,
           '-'},
          {"abs",
           "abs",
           kSigned | kFloating,
           {any},
           [](In x) { return abs(x[0]); },
           [](R x) { return std::abs(x[0]); },
           [](W x, DType) { return x[0] < 0 ? -x[0] : x[0]; }},
          {"sign",
           "sign",
           kNumbers,
           {any},
           [](In x) { return sign(x[0]); },
           [](R x) { return x[0] > 0   ? 1.0
                            : x[0] < 0 ? -1.0
                                       : x[0]; },
           [](W x, DType) { return static_cast<Wide>((x[0] > 0) - (x[0] < 0)); }},
          {"relu",
           "relu",
           kNumbers,
           {any},
           [](In x) { return relu(x[0]); },
           [](R x) { return x[0] < 0 ? 0.0 : x[0]; },
           [](W x, DType) { return std::max<Wide>(x[0], 0); }},
          {"not",
           "not",
           kBool | kIntegers,
           {any},
           [](In x) { return ~x[0]; },
           nullptr,
           [](W x, DType t) { return t == DType::bool_ ? 1 - x[0] : ~x[0]; }},
          {"is_finite",
           "is_finite",
           kFloating,
           {any},
           [](In x) { return isfinite(x[0]); },
           [](R x) { return std::isfinite(x[0]) ? 1.0 : 0.0; },
           nullptr,
           0,
           0,
           true}};
}
inline std::vector<Scalar> function_scalars() {
  const Range any{-4, 4}, positive{0.2, 6}, small{-2, 2};
  return {smooth(
              "floor", any, [](In x) { return floor(x[0]); }, [](R x) { return std::floor(x[0]); }, 0),
          smooth(
              "ceil", any, [](In x) { return ceil(x[0]); }, [](R x) { return std::ceil(x[0]); }, 0),
          smooth(
              "trunc", any, [](In x) { return trunc(x[0]); }, [](R x) { return std::trunc(x[0]); }, 0),
          smooth(
              "round", any, [](In x) { return round(x[0]); }, [](R x) { return std::nearbyint(x[0]); }, 0),
          smooth(
              "exp", small, [](In x) { return exp(x[0]); }, [](R x) { return std::exp(x[0]); }),
          smooth(
              "expm1", small, [](In x) { return expm1(x[0]); }, [](R x) { return std::expm1(x[0]); }),
          smooth(
              "log", positive, [](In x) { return log(x[0]); }, [](R x) { return std::log(x[0]); }),
          smooth(
              "log1p", {-0.5, 4}, [](In x) { return log1p(x[0]); }, [](R x) { return std::log1p(x[0]); }),
          smooth(
              "sqrt", positive, [](In x) { return sqrt(x[0]); }, [](R x) { return std::sqrt(x[0]); }, 0),
          smooth(
              "sinc", {0.1, 0.7}, [](In x) { return sinc(x[0]); },
              [](R x) {
                const long double a = std::numbers::pi_v<long double> * x[0];
                return a == 0 ? 1 : static_cast<double>(std::sin(a) / a);
              },
              40),
          smooth(
              "rsqrt", positive, [](In x) { return rsqrt(x[0]); }, [](R x) { return 1 / std::sqrt(x[0]); })};
}
inline std::vector<Scalar> circle_scalars() {
  const Range any{-4, 4}, small{-2, 2}, unit{-0.9, 0.9};
  return {
      smooth(
          "sin", any, [](In x) { return sin(x[0]); }, [](R x) { return std::sin(x[0]); }),
      smooth(
          "cos", any, [](In x) { return cos(x[0]); }, [](R x) { return std::cos(x[0]); }),
      smooth(
          "tan", {-1.2, 1.2}, [](In x) { return tan(x[0]); }, [](R x) { return std::tan(x[0]); }, 8),
      smooth(
          "tanh", any, [](In x) { return tanh(x[0]); }, [](R x) { return std::tanh(x[0]); }, 8),
      smooth(
          "sinh", small, [](In x) { return sinh(x[0]); }, [](R x) { return std::sinh(x[0]); }, 8),
      smooth(
          "cosh", small, [](In x) { return cosh(x[0]); }, [](R x) { return std::cosh(x[0]); }, 8),
      smooth(
          "asin", unit, [](In x) { return asin(x[0]); }, [](R x) { return std::asin(x[0]); }, 8),
      smooth(
          "acos", unit, [](In x) { return acos(x[0]); }, [](R x) { return std::acos(x[0]); }, 8),
      smooth(
          "atan", any, [](In x) { return atan(x[0]); }, [](R x) { return std::atan(x[0]); }, 8),
      smooth(
          "erf", any, [](In x) { return erf(x[0]); }, [](R x) { return std::erf(x[0]); }, 8),
      smooth(
          "erfc", small, [](In x) { return erfc(x[0]); }, [](R x) { return std::erfc(x[0]); }, 64),
      smooth(
          "erf_inv", unit, [](In x) { return erf_inv(x[0]); }, [](R x) { return inverse_erf(x[0]); }, 64),
      smooth(
          "logistic", any, [](In x) { return sigmoid(x[0]); }, [](R x) { return share_of_one(x[0]); }, 8)};
}

inline std::vector<Scalar> arithmetic_scalars() {
  const Range any{-4, 4}, away{0.5, 3};
  return {{"add",
           "add",
           kNumbers,
           {any, any},
           [](In x) { return x[0] + x[1]; },
           [](R x) { return x[0] + x[1]; },
           [](W x, DType) { return x[0] + x[1]; },
           0,
           '+'},
          {"sub",
           "sub",
           kNumbers,
           {any, any},
           [](In x) { return x[0] - x[1]; },
           [](R x) { return x[0] - x[1]; },
           [](W x, DType) { return x[0] - x[1]; },
           0,
           '+'},
          {"mul",
           "mul",
           kNumbers,
           {any, any},
           [](In x) { return x[0] * x[1]; },
           [](R x) { return x[0] * x[1]; },
           times,
           0,
           '*'},
          {"div",
           "div",
           kFloating,
           {any, away},
           [](In x) { return x[0] / x[1]; },
           [](R x) { return x[0] / x[1]; },
           nullptr,
           0,
           '/'},
          {"floor_divide",
           "div",
           kIntegers | kFloat,
           {any, away},
           [](In x) { return floor_divide(x[0], x[1]); },
           [](R x) { return std::floor(x[0] / x[1]); },
           [](W x, DType) { return floor_quotient(x[0], x[1]); }},
          {"remainder",
           "rem",
           kNumbers & ~kHalf,
           {any, away},
           [](In x) { return x[0] % x[1]; },
           [](R x) { return modulo(x[0], x[1]); },
           [](W x, DType) { return x[1] == 0 ? x[0] : x[0] - floor_quotient(x[0], x[1]) * x[1]; },
           1}};
}
inline std::vector<Scalar> more_arithmetic_scalars() {
  const Range any{-4, 4}, away{0.5, 3};
  return {{"max",
           "max",
           kAll,
           {any, any},
           [](In x) { return maximum(x[0], x[1]); },
           [](R x) { return std::isnan(x[0])                  ? x[0]
                            : std::isnan(x[1]) || x[0] < x[1] ? x[1]
                                                              : x[0]; },
           [](W x, DType) { return std::max(x[0], x[1]); }},
          {"min",
           "min",
           kAll,
           {any, any},
           [](In x) { return minimum(x[0], x[1]); },
           [](R x) { return std::isnan(x[0])                  ? x[0]
                            : std::isnan(x[1]) || x[1] < x[0] ? x[1]
                                                              : x[0]; },
           [](W x, DType) { return std::min(x[0], x[1]); }},
          {"pow",
           "pow",
           kNumbers,
           {{0.5, 2}, {-2, 2}},
           [](In x) { return power(x[0], x[1]); },
           [](R x) { return std::pow(x[0], x[1]); },
           power_of,
           8},
          {"atan2",
           "atan2",
           kFloating,
           {any, away},
           [](In x) { return atan2(x[0], x[1]); },
           [](R x) { return std::atan2(x[0], x[1]); },
           nullptr,
           8},
          {"fma",
           "fma",
           kFloating,
           {any, any, any},
           [](In x) { return fma(x[0], x[1], x[2]); },
           [](R x) { return std::fma(x[0], x[1], x[2]); },
           nullptr,
           1}};
}

inline std::vector<Scalar> logic_scalars() {
  const Range any{-4, 4};
  auto compare = [&](const char* name, Array (*apply)(In), double (*real)(R), Wide (*whole)(W, DType)) {
    return Scalar{name, name, kAll, {any, any}, apply, real, whole, 0, 0, true};
  };
  auto bits = [&](const char* name, unsigned kinds, Array (*apply)(In), Wide (*whole)(W, DType)) {
    return Scalar{name, name, kinds, {any, any}, apply, nullptr, whole};
  };
  return {
      compare(
          "eq", [](In x) { return x[0] == x[1]; }, [](R x) { return double(x[0] == x[1]); },
          [](W x, DType) { return Wide(x[0] == x[1]); }),
      compare(
          "ne", [](In x) { return x[0] != x[1]; }, [](R x) { return double(x[0] != x[1]); },
          [](W x, DType) { return Wide(x[0] != x[1]); }),
      compare(
          "lt", [](In x) { return x[0] < x[1]; }, [](R x) { return double(x[0] < x[1]); },
          [](W x, DType) { return Wide(x[0] < x[1]); }),
      compare(
          "le", [](In x) { return x[0] <= x[1]; }, [](R x) { return double(x[0] <= x[1]); },
          [](W x, DType) { return Wide(x[0] <= x[1]); }),
      compare(
          "gt", [](In x) { return x[0] > x[1]; }, [](R x) { return double(x[0] > x[1]); },
          [](W x, DType) { return Wide(x[0] > x[1]); }),
      compare(
          "ge", [](In x) { return x[0] >= x[1]; }, [](R x) { return double(x[0] >= x[1]); },
          [](W x, DType) { return Wide(x[0] >= x[1]); }),
      bits(
          "and", kBool | kIntegers, [](In x) { return x[0] & x[1]; }, [](W x, DType) { return x[0] & x[1]; }),
      bits(
          "or", kBool | kIntegers, [](In x) { return x[0] | x[1]; }, [](W x, DType) { return x[0] | x[1]; }),
      bits(
          "xor", kBool | kIntegers, [](In x) { return x[0] ^ x[1]; }, [](W x, DType) { return x[0] ^ x[1]; }),
      bits(
          "shl", kIntegers, [](In x) { return x[0] << x[1]; }, shift_left),
      bits(
          "shr", kIntegers, [](In x) { return x[0] >> x[1]; }, shift_right)};
}

}  // namespace plain

/// All of them.
inline const std::vector<Scalar>& scalars() {
  static const std::vector<Scalar> list = [] {
    std::vector<Scalar> r;
    for (auto part : {plain::sign_scalars, plain::function_scalars, plain::circle_scalars,
                      plain::arithmetic_scalars, plain::more_arithmetic_scalars, plain::logic_scalars,
                      plain::power_scalars, plain::special_scalars, plain::count_scalars})
      for (Scalar& s : part()) r.push_back(std::move(s));
    return r;
  }();
  return list;
}
inline const Scalar& scalar_named(const std::string& name) {
  return *std::find_if(scalars().begin(), scalars().end(), [&](const Scalar& s) { return s.name == name; });
}

namespace plain {

inline Element real_scalar(const Scalar& s, const Element* in, DType result, DType t) {
  const std::size_t n = s.operands.size();
  double x[3] = {}, sizes[3] = {};
  bool sure = true, sums = false;
  for (std::size_t k = 0; k < n; k++) {
    x[k] = static_cast<double>(in[k].value);
    sizes[k] = std::max(in[k].size, std::abs(x[k]));
    sure = sure && in[k].error == 0;
    sums = sums || in[k].size > std::abs(x[k]) * (1 + 1e-9);
  }
  const double r = s.real(x);
  double error = std::isfinite(r) ? s.ulps * 2 * computing_roundoff(t) * std::abs(r) : 0;
  for (unsigned corner = 0; !sure && corner < (1u << n); corner++) {
    double at[3] = {};
    for (std::size_t k = 0; k < n; k++) at[k] = x[k] + (corner >> k & 1 ? -1 : 1) * in[k].error;
    const double there = s.real(at);
    if (there == r || (std::isnan(there) && std::isnan(r))) continue;
    error = std::max(error, 1.01 * std::abs(there - r) + s.ulps * 2 * computing_roundoff(t) * std::abs(r));
    if (std::isnan(error)) error = kAnything;
  }
  for (std::size_t k = 0; k < n; k++)
    if (in[k].error == kAnything) error = kAnything;
  if (s.truth && n == 2 && !sure && std::abs(x[0] - x[1]) <= in[0].error + in[1].error)
    error = kAnything;  // they may be equal
  if (s.truth) return {r, error > 0 ? kAnything : 0, 0};
  double size = 0;
  if (s.linear == '+') size = sizes[0] + sizes[1];
  if (s.linear == '*') size = sizes[0] * sizes[1];
  if (s.linear == '/') size = sizes[0] / std::abs(x[1]);
  if (s.linear == '-') size = sizes[0];
  if (is_half_type(result)) size = 0;  // combined in float32 before
  // a sum of sums is one longer sum, added up in any order
  if (sums && s.linear == '+' && std::isfinite(r)) error += 40 * roundoff(result) * size;
  return real_element(result, r, error, size);
}

inline Element whole_scalar(const Scalar& s, const Element* in, DType result, DType t) {
  Wide x[3] = {};
  bool sure = true;
  for (std::size_t k = 0; k < s.operands.size(); k++) {
    x[k] = static_cast<Wide>(in[k].value);
    sure = sure && in[k].error == 0;
  }
  const Element e = whole_element(result, s.whole(x, t));
  return sure ? e : unknown_element(e);
}

/// The operands are broadcast.
inline Plain apply_scalar(const Scalar& s, std::span<const Plain> in) {
  Shape shape;
  for (const Plain& x : in) {
    while (shape.size() < x.shape.size()) shape.insert(0, 1);
    for (std::size_t d = 0, first = shape.size() - x.shape.size(); d < x.shape.size(); d++)
      if (x.shape[d] != 1) shape[first + d] = x.shape[d];
  }
  const DType t = in[0].dtype, result = s.truth ? DType::bool_ : t;
  Plain r{shape, result, {}};
  each_index(shape, [&](const Shape& i) {
    Element x[3];
    for (std::size_t k = 0; k < in.size(); k++) {
      Shape mine;
      for (std::size_t d = 0; d < in[k].shape.size(); d++)
        mine.push_back(in[k].shape[d] == 1 ? 0 : i[i.size() - in[k].shape.size() + d]);
      x[k] = in[k].at(mine);
    }
    r.data.push_back(is_floating(t) ? real_scalar(s, x, result, t) : whole_scalar(s, x, result, t));
  });
  return r;
}

}  // namespace plain
}  // namespace shardarray::testing
