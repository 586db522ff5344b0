// Elementwise functions by their names in ops.json.
#pragma once
#include <functional>
#include <map>
#include <string>

#include "jax_cases.h"

namespace jax_ops_test {

namespace sa = shardarray;
using jax_cases::Array;

using Unary = Array (*)(const Array&);
using Binary = Array (*)(const Array&, const Array&);

template <auto& f> Array one(const Array& x) { return f(x); }
template <auto& f> Array two(const Array& a, const Array& b) { return f(a, b); }

/// The unsigned dtype of the same width, and back.
inline sa::DType unsigned_of(sa::DType t) {
  return t == sa::int8 ? sa::uint8 : t == sa::int32 ? sa::uint32 : t;
}
inline sa::DType signed_of(sa::DType t) {
  return t == sa::uint8 ? sa::int8 : t == sa::uint32 ? sa::int32 : t;
}
/// f of the same bits as numbers of another dtype.
template <class F> Array on_bits(const Array& a, const Array& b, sa::DType t, F f) {
  return sa::bitcast(f(sa::bitcast(a, t), sa::bitcast(b, t)), a.dtype());
}

inline const std::map<std::string, Unary>& unaries() {
  static const std::map<std::string, Unary> table = {
      {"abs", one<sa::abs>},
      {"negative", one<sa::negative>},
      {"sign", one<sa::sign>},
      {"sqrt", one<sa::sqrt>},
      {"cbrt", one<sa::cbrt>},
      {"square", one<sa::square>},
      {"reciprocal", one<sa::reciprocal>},
      {"exp", one<sa::exp>},
      {"exp2", one<sa::exp2>},
      {"expm1", one<sa::expm1>},
      {"log", one<sa::log>},
      {"log2", one<sa::log2>},
      {"log10", one<sa::log10>},
      {"log1p", one<sa::log1p>},
      {"sin", one<sa::sin>},
      {"cos", one<sa::cos>},
      {"tan", one<sa::tan>},
      {"arcsin", one<sa::arcsin>},
      {"arccos", one<sa::arccos>},
      {"arctan", one<sa::arctan>},
      {"sinh", one<sa::sinh>},
      {"cosh", one<sa::cosh>},
      {"tanh", one<sa::tanh>},
      {"arcsinh", one<sa::arcsinh>},
      {"arccosh", one<sa::arccosh>},
      {"arctanh", one<sa::arctanh>},
      {"floor", one<sa::floor>},
      {"ceil", one<sa::ceil>},
      {"trunc", one<sa::trunc>},
      {"rint", one<sa::rint>},
      {"isnan", one<sa::isnan>},
      {"isinf", one<sa::isinf>},
      {"isfinite", one<sa::isfinite>},
      {"signbit", one<sa::signbit>},
      {"sinc", one<sa::sinc>},
      {"nan_to_num", one<sa::nan_to_num>},
      {"logical_not", one<sa::logical_not>},
      {"deg2rad", one<sa::deg2rad>},
      {"invert", one<sa::bitwise_not>},
      {"lax.rsqrt", one<sa::rsqrt>},
      {"lax.erf", one<sa::erf>},
      {"lax.erfc", one<sa::erfc>},
      {"lax.erf_inv", one<sa::erf_inv>},
      {"lax.lgamma", one<sa::lgamma>},
      {"lax.digamma", one<sa::digamma>},
      {"lax.logistic", one<sa::sigmoid>},
      {"lax.population_count", one<sa::population_count>},
      {"lax.clz", one<sa::clz>},
      {"nn.relu", one<sa::relu>},
      {"nn.relu6", one<sa::relu6>},
      {"nn.sigmoid", one<sa::sigmoid>},
      {"nn.softplus", one<sa::softplus>},
      {"nn.silu", one<sa::silu>},
      {"nn.elu", one<sa::elu>},
      {"nn.selu", one<sa::selu>},
      {"nn.celu", one<sa::celu>},
      {"nn.leaky_relu", one<sa::leaky_relu>},
      {"nn.log_sigmoid", one<sa::log_sigmoid>},
      {"nn.hard_tanh", one<sa::hard_tanh>},
      {"nn.soft_sign", one<sa::soft_sign>},
      {"nn.hard_sigmoid", one<sa::hard_sigmoid>},
      {"nn.hard_silu", one<sa::hard_silu>},
      {"nn.mish", one<sa::mish>},
      {"nn.squareplus", one<sa::squareplus>},
      {"nn.gelu", one<sa::gelu>},
      {"nn.gelu_exact", [](const Array& x) { return sa::gelu(x, false); }},
      {"round_even_0", [](const Array& x) { return sa::round(x); }},
      {"round_2", [](const Array& x) { return sa::round(x, 2); }},
      {"lax.round_away", [](const Array& x) { return sa::round(x, sa::RoundingMethod::away_from_zero); }},
      {"lax.reduce_precision", [](const Array& x) { return x.astype(sa::float16).astype(sa::float32); }},
      {"lax.bitcast_convert_type", [](const Array& x) { return sa::bitcast(x, sa::uint32); }},
      {"ldexp", [](const Array& x) { return sa::ldexp(x, 3); }},
      {"x**2", [](const Array& x) { return sa::power(x, 2); }},
      {"x**3", [](const Array& x) { return sa::power(x, 3); }},
      {"x**-1", [](const Array& x) { return sa::power(x, -1); }},
      {"x**-2", [](const Array& x) { return sa::power(x, -2); }},
      {"x**0.5", [](const Array& x) { return sa::power(x, 0.5); }},
      {"x**0", [](const Array& x) { return sa::power(x, 0); }},
      {"2**x", [](const Array& x) { return sa::power(2.0, x); }},
      {"scipy.i0", one<sa::i0>},
      {"scipy.ndtr", one<sa::ndtr>},
      {"scipy.ndtri", one<sa::ndtri>},
      {"scipy.entr", one<sa::entr>},
      {"scipy.logit", one<sa::logit>}};
  return table;
}

inline const std::map<std::string, Binary>& binaries() {
  static const std::map<std::string, Binary> table = {
      {"add", two<sa::add>},
      {"subtract", two<sa::subtract>},
      {"multiply", two<sa::multiply>},
      {"true_divide", two<sa::true_divide>},
      {"floor_divide", two<sa::floor_divide>},
      {"mod", two<sa::remainder>},
      {"fmod", two<sa::fmod>},
      {"power", two<sa::power>},
      {"maximum", two<sa::maximum>},
      {"minimum", two<sa::minimum>},
      {"fmax", two<sa::fmax>},
      {"fmin", two<sa::fmin>},
      {"arctan2", two<sa::arctan2>},
      {"hypot", two<sa::hypot>},
      {"logaddexp", two<sa::logaddexp>},
      {"logaddexp2", two<sa::logaddexp2>},
      {"copysign", two<sa::copysign>},
      {"nextafter", two<sa::nextafter>},
      {"heaviside", two<sa::heaviside>},
      {"equal", two<sa::equal>},
      {"not_equal", two<sa::not_equal>},
      {"less", two<sa::less>},
      {"less_equal", two<sa::less_equal>},
      {"greater", two<sa::greater>},
      {"greater_equal", two<sa::greater_equal>},
      {"logical_and", two<sa::logical_and>},
      {"logical_or", two<sa::logical_or>},
      {"logical_xor", two<sa::logical_xor>},
      {"isclose", two<sa::isclose>},
      {"gcd", two<sa::gcd>},
      {"lcm", two<sa::lcm>},
      {"bitwise_and", two<sa::bitwise_and>},
      {"bitwise_or", two<sa::bitwise_or>},
      {"bitwise_xor", two<sa::bitwise_xor>},
      {"left_shift", two<sa::left_shift>},
      {"right_shift", two<sa::right_shift>},
      {"scipy.xlogy", two<sa::xlogy>},
      {"scipy.xlog1py", two<sa::xlog1py>},
      {"lax.rem", two<sa::rem>},
      {"lax.pow", two<sa::pow>},
      {"lax.div", [](const Array& a, const Array& b) { return sa::floor_divide(a - sa::fmod(a, b), b); }},
      {"lax.shift_left", two<sa::left_shift>},
      {"lax.shift_right_logical",
       [](const Array& a, const Array& b) {
         return on_bits(a, b, unsigned_of(a.dtype()), two<sa::right_shift>);
       }},
      {"lax.shift_right_arithmetic", [](const Array& a, const Array& b) {
         return on_bits(a, b, signed_of(a.dtype()), two<sa::right_shift>);
       }}};
  return table;
}

}  // namespace jax_ops_test
