// astype, bitcast, stop_gradient: elements under another type.
#include <fmt/core.h>

#include "base/count_text.h"
#include "ops/api.h"
#include "ops/complex.h"
#include "ops/rules.h"
#include "shardarray/math.h"

namespace shardarray {

using namespace rules;

// attrs.dtype; attrs.lo = {1}: the result is weak.
SHARDARRAY_OP op_cast = elementwise(
    {.name = "cast",
     .type =
         [](const Call& c) {
           return Types{{c.in[0].shape, c.attrs->dtype, !c.attrs->lo.empty()}};
         },
     .linearity = [](const Call& c,
                     int) { return c.in[0].dtype == c.attrs->dtype ? Linear::joint : Linear::no; },
     .jvp =
         [](const JvpArgs& v) {
           const Type& t = type_of(v.out[0]);
           return Arrays{is_inexact(t.dtype) && v.tangents[0].has_value()
                             ? primitive::cast(v.tangents[0], t.dtype, t.weak)
                             : Array()};
         },
     .transpose =
         [](const TransposeArgs& t) {
           const Type& x = type_of(t.in[0]);
           return Arrays{primitive::cast(t.cotangents[0], x.dtype, x.weak)};
         },
     .scalar = [](ScalarArgs& s) { s.out[0] = s.b.cast(s.in[0], s.call.attrs->dtype); },
     .trait = Trait::conversion,
     .on_parts = complex_ops::cast});
Array astype_fn::operator()(const Array& x, DType t, Where w) const {
  const Site site(w, "astype");
  type_of(x, "astype");
  return primitive::cast(x, t);
}

// attrs.dtype: of the same width.
SHARDARRAY_OP op_bitcast = elementwise(
    {.name = "bitcast",
     .type =
         [](const Call& c) {
           if (itemsize(c.in[0].dtype) != itemsize(c.attrs->dtype))
             throw DTypeError(fmt::format(
                 "bitcast: {} of {} to {} of {}. The widths must be equal. Use astype to convert values.",
                 to_string(c.in[0]), count_text(itemsize(c.in[0].dtype), "byte"), name(c.attrs->dtype),
                 count_text(itemsize(c.attrs->dtype), "byte")));
           if ((c.in[0].dtype == DType::bool_) != (c.attrs->dtype == DType::bool_))
             throw DTypeError(fmt::format(
                 "bitcast: {} to {}. A bool has one bit, whatever its byte. Use astype to convert values.",
                 to_string(c.in[0]), name(c.attrs->dtype)));
           return Types{{c.in[0].shape, c.attrs->dtype, false}};
         },
     .jvp = no_tangent,
     .scalar = [](ScalarArgs& s) { s.out[0] = s.b.bitcast(s.in[0], s.call.attrs->dtype); },
     .trait = Trait::bits});
Array bitcast_fn::operator()(const Array& x, DType t, Where w) const {
  const Site site(w, "bitcast");
  api::need_real("bitcast", t);
  return primitive::bitcast(x, t);
}

// Identity with zero derivative.
SHARDARRAY_OP op_stop_gradient = elementwise({.name = "stop_gradient",
                                              .jvp = no_tangent,
                                              .scalar = [](ScalarArgs& s) { s.out[0] = s.in[0]; },
                                              .trait = Trait::alias});
// Operand 0 with the tangent of operand 1, whose value is not needed: compiles to an alias.
SHARDARRAY_OP op_slope_of = elementwise({.name = "slope_of",
                                         .type = same_type,
                                         .jvp = [](const JvpArgs& v) { return Arrays{v.tangents[1]}; },
                                         .scalar = [](ScalarArgs& s) { s.out[0] = s.in[0]; },
                                         .trait = Trait::alias});
Array primitive::with_slope_of(const Array& value, const Array& line) {
  return binary(op_slope_of, unary(op_stop_gradient, value), line);
}
Array stop_gradient(const Array& x, Where w) {
  const Site site(w, "stop_gradient");
  return primitive::unary(op_stop_gradient, x);
}

}  // namespace shardarray
