// Implements the function objects of math.h, and the reductions and running reductions of ops.h: a body is defined beside its op, and the
// call operator is instantiated there (exported by name, because compilers hide instantiations for string arguments). Sources that include
// this are never part of a unity build with others that may use the objects (cmake/library.cmake): the call would be instantiated there
// too.
//
//   template <> constexpr UnaryBody unary_body<"exp"> = floating<op_exp>;
//   template SHARDARRAY_API Array UnaryFunction<"exp">::operator()(const Array&, Where) const;
// Functions composed of other objects have no body: their call is specialised as a whole, in a source that does not include this
// (statistics.cpp, nan_reductions.cpp).
#pragma once
#include "graph/trace_state.h"
#include "ops/api.h"
#include "shardarray/ops.h"

namespace shardarray {

using UnaryBody = Array (*)(const char* function, const Array& x);
using BinaryBody = Array (*)(const char* function, const Array& a, const Array& b);
using ReduceBody = Array (*)(const char* function, const Array& x, const ReduceOptions& o);
using SpreadBody = Array (*)(const char* function, const Array& x, const ReduceOptions& o, std::int64_t ddof);
using CumulativeBody = Array (*)(const char* function, const Array& x, const CumulativeOptions& o);
/// For missing bodies. (Comparing the pointers would not be a constant expression under UBSan.)
template <detail::FixedString> inline constexpr bool has_body = false;
template <detail::FixedString name> consteval std::nullptr_t missing_body() {
  static_assert(has_body<name>, "the body stands in another source");
  return nullptr;
}
template <detail::FixedString name> constexpr UnaryBody unary_body = missing_body<name>();
template <detail::FixedString name> constexpr BinaryBody binary_body = missing_body<name>();
template <detail::FixedString name> constexpr ReduceBody reduce_body = missing_body<name>();
template <detail::FixedString name> constexpr SpreadBody spread_body = missing_body<name>();
template <detail::FixedString name> constexpr CumulativeBody cumulative_body = missing_body<name>();

template <detail::FixedString name> Array UnaryFunction<name>::operator()(const Array& x, Where w) const {
  const Site site(w, name.text);
  return unary_body<name>(name.text, x);
}
template <detail::FixedString name>
Array BinaryFunction<name>::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w, name.text);
  return binary_body<name>(name.text, a, b);
}
template <detail::FixedString name>
Array ReduceFunction<name>::operator()(const Array& x, const ReduceOptions& o, Where w) const {
  const Site site(w, name.text);
  return reduce_body<name>(name.text, x, o);
}
template <detail::FixedString name>
Array SpreadFunction<name>::operator()(const Array& x, const ReduceOptions& o, std::int64_t ddof,
                                       Where w) const {
  const Site site(w, name.text);
  return spread_body<name>(name.text, x, o, ddof);
}
template <detail::FixedString name>
Array CumulativeFunction<name>::operator()(const Array& x, const CumulativeOptions& o, Where w) const {
  const Site site(w, name.text);
  return cumulative_body<name>(name.text, x, o);
}

/// Bodies that record one op. Bool and integers become floating first.
template <const Op& op> Array floating(const char* function, const Array& x) {
  return primitive::unary(op, api::cast(x, api::to_inexact(api::weak_type_of(x, function))));
}
template <const Op& op> Array floating(const char* function, const Array& a, const Array& b) {
  const Arrays x = api::floats_together(function, {&a, &b});
  return primitive::binary(op, x[0], x[1]);
}
/// Strong, or weak only for scalars: see api::strong(), api::strong_array().
template <Array (*body)(const char*, const Array&)> Array strong(const char* function, const Array& x) {
  return api::strong(body(function, x));
}
template <Array (*body)(const char*, const Array&)> Array strong_array(const char* function, const Array& x) {
  return api::strong_array(body(function, x));
}
template <Array (*body)(const char*, const Array&, const Array&)>
Array strong_array(const char* function, const Array& a, const Array& b) {
  return api::strong_array(body(function, a, b));
}
/// Bodies that apply one function to floats, rounded once.
template <Array (*f)(const Array&)> Array rounded(const char* function, const Array& x) {
  return api::rounded_once(api::to_inexact(api::weak_type_of(x, function)), f, x);
}
template <Array (*f)(const Array&, const Array&)>
Array rounded(const char* function, const Array& a, const Array& b) {
  const WeakType t = api::to_inexact(api::promoted(function, {&a, &b}));
  const Arrays x = api::together(function, {&a, &b}, t);
  return api::rounded_once(t, f, x[0], x[1]);
}
/// In the operands' common type.
template <const Op& op> Array promoting(const char* function, const Array& a, const Array& b) {
  const Arrays x = api::together(function, {&a, &b}, api::promoted(function, {&a, &b}));
  return primitive::binary(op, x[0], x[1]);
}

}  // namespace shardarray
