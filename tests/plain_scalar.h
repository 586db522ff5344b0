// An elementwise operation with its plain definition: what plain_scalars.h and plain_functions.h list.
#pragma once
#include <algorithm>
#include <cmath>
#include <span>

#include "ops/record.h"
#include "plain_value.h"
#include "shardarray/ops.h"

namespace shardarray::testing {

/// Kinds of dtypes, as bits.
enum Kinds : unsigned {
  kBool = 1,
  kSigned = 2,
  kUnsigned = 4,
  kHalf = 8,
  kFloat = 16,
  kIntegers = kSigned | kUnsigned,
  kFloating = kHalf | kFloat,
  kNumbers = kIntegers | kFloating,
  kAll = kBool | kNumbers
};
inline unsigned kind_of(DType t) {
  return t == DType::bool_        ? kBool
         : is_signed_integer(t)   ? kSigned
         : is_unsigned_integer(t) ? kUnsigned
         : is_half_type(t)        ? kHalf
                                  : kFloat;
}

struct Range {
  double lo = -3, hi = 3;
};

struct Scalar {
  const char* name;
  const char* op;  ///< of the library, whose cells it fills
  unsigned kinds;
  std::vector<Range> operands;  ///< where it is smooth, for floating operands
  Array (*apply)(std::span<const Array>);
  double (*real)(const double*) = nullptr;
  Wide (*whole)(const Wide*, DType) = nullptr;
  double ulps = 0;  ///< how far the library's function may be off
  char linear =
      0;  ///< what the size of a sum in parts becomes: '+', '*', '/', '-' (one operand); 0: it is combined
  bool truth = false;  ///< the result is bool
};

namespace plain {

using In = std::span<const Array>;

using R = const double*;
using W = const Wide*;

inline Scalar smooth(const char* name, Range in, Array (*apply)(In), double (*real)(R), double ulps = 4) {
  return {name, name, kFloating, {in}, apply, real, nullptr, ulps};
}

}  // namespace plain
}  // namespace shardarray::testing
