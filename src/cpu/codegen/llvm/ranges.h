// Bounds of a float value, enough to convert it to an integer without checks; and an instruction's operands, which include that.
#pragma once
#include <limits>

#include "cpu/codegen/llvm/values.h"

namespace shardarray::codegen {

struct Range {
  double lo = -std::numeric_limits<double>::infinity(), hi = std::numeric_limits<double>::infinity();
};
/// Bounds of a kernel's value v wherever it is not NaN.
Range range_of(const Kernel& k, int v, int depth = 8);
/// Both bounds convert to int32.
bool fits_int32(const Range& r);
/// What emit_value() needs for instruction v of a kernel; `value(o)` returns instruction o's value.
template <class Get> Operands operands_of(const Kernel& k, int v, Get value) {
  const Instr& in = k.code[static_cast<std::size_t>(v)];
  Operands o{in.a < 0 || in.code == Code::select ? in.type : k.code[static_cast<std::size_t>(in.a)].type};
  if (in.code == Code::cast && is_floating(o.type)) o.fits = fits_int32(range_of(k, in.a));
  if (in.a >= 0) o.a = value(in.a);
  if (in.b >= 0) o.b = value(in.b);
  if (in.c >= 0) o.c = value(in.c);
  return o;
}

}  // namespace shardarray::codegen
