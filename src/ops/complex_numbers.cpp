// real, imag, complex, conjugate, angle: the public functions.
#include "shardarray/complex.h"

#include "base/complex_parts.h"
#include "ops/complex.h"
#include "ops/function.h"

namespace shardarray {

template <>
constexpr UnaryBody unary_body<"real"> = [](const char* function, const Array& x) {
  type_of(x, function);
  return primitive::real(x);
};
template SHARDARRAY_API Array UnaryFunction<"real">::operator()(const Array&, Where) const;
template <>
constexpr UnaryBody unary_body<"imag"> = [](const char* function, const Array& x) {
  type_of(x, function);
  return primitive::imag(x);
};
template SHARDARRAY_API Array UnaryFunction<"imag">::operator()(const Array&, Where) const;
template <>
constexpr BinaryBody binary_body<"complex"> = [](const char* function, const Array& a, const Array& b) {
  api::need_real(function, a);
  api::need_real(function, b);
  const Arrays x =
      api::together(function, {&a, &b}, api::computed(api::to_inexact(api::promoted(function, {&a, &b}))));
  return primitive::pair(x[0], x[1]);
};
template SHARDARRAY_API Array BinaryFunction<"complex">::operator()(const Array&, const Array&, Where) const;
template <>
constexpr UnaryBody unary_body<"conjugate"> = [](const char* function, const Array& x) {
  type_of(x, function);
  return primitive::conj(x);
};
template SHARDARRAY_API Array UnaryFunction<"conjugate">::operator()(const Array&, Where) const;
template <>
constexpr UnaryBody unary_body<"angle"> = [](const char* function, const Array& x) {
  const Complex z(api::cast(x, api::to_inexact(api::weak_type_of(x, function))));
  return primitive::binary(op_atan2, z.im, z.re);
};
template SHARDARRAY_API Array UnaryFunction<"angle">::operator()(const Array&, Where) const;
static Array has_imaginary_part(const Op& op, const char* function, const Array& x) {
  const Array im = primitive::imag((type_of(x, function), x));
  return primitive::binary(op, im, primitive::like_whole(im, 0));
}
template <>
constexpr UnaryBody unary_body<"iscomplex"> =
    [](const char* function, const Array& x) { return has_imaginary_part(op_ne, function, x); };
template SHARDARRAY_API Array UnaryFunction<"iscomplex">::operator()(const Array&, Where) const;
template <>
constexpr UnaryBody unary_body<"isreal"> =
    [](const char* function, const Array& x) { return has_imaginary_part(op_eq, function, x); };
template SHARDARRAY_API Array UnaryFunction<"isreal">::operator()(const Array&, Where) const;

}  // namespace shardarray
