// Comparing values. The functions that give a C++ bool evaluate.
#pragma once
#include "shardarray/array.h"
#include "shardarray/export.h"

namespace shardarray {

/// Options of isclose() and allclose().
struct CloseOptions {
  double rtol = 1e-5, atol = 1e-8;  ///< relative to b; absolute
  bool equal_nan = false;           ///< NaN is close to NaN
};
/// bool: |a - b| <= atol + rtol |b|, after broadcasting; an infinity is close to its equal only. Whole numbers and bools are compared
/// in float64, others in their promoted dtype. Evaluates nothing. Throws ShapeError when the shapes do not broadcast.
inline constexpr struct SHARDARRAY_API isclose_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, const CloseOptions& o = {},
                                 Where w = Where::here()) const;
} isclose{};
/// isclose everywhere. True of no elements. Throws as isclose.
[[nodiscard]] SHARDARRAY_API bool allclose(const Array& a, const Array& b, const CloseOptions& o = {},
                                           Where w = Where::here());
/// Equal shapes and equal values (NaN equals nothing); dtypes may differ, values are compared in the promoted one. Throws
/// DTypeError where one is a whole-number literal that is no value of the other's dtype.
[[nodiscard]] SHARDARRAY_API bool array_equal(const Array& a, const Array& b, Where w = Where::here());

}  // namespace shardarray
