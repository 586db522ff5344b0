// Comparing values. Functions that return a C++ bool evaluate.
#pragma once
#include "shardarray/array.h"
#include "shardarray/export.h"

namespace shardarray {

/// Options of isclose() and allclose().
struct CloseOptions {
  double rtol = 1e-5, atol = 1e-8;  ///< relative to b; absolute
  bool equal_nan = false;           ///< NaN is close to NaN
};
/// bool: |a - b| <= atol + rtol |b|, after broadcasting; an infinity is only close to itself. Integers and bools are compared in float64,
/// others in their promoted dtype. Does not evaluate. Throws ShapeError if the shapes do not broadcast.
inline constexpr struct SHARDARRAY_API isclose_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, const CloseOptions& o = {},
                                 Where w = Where::here()) const;
} isclose{};
/// Whether isclose holds everywhere; true for no elements. Throws as isclose.
[[nodiscard]] SHARDARRAY_API bool allclose(const Array& a, const Array& b, const CloseOptions& o = {},
                                           Where w = Where::here());
/// Whether shapes and values are equal (NaN equals nothing); dtypes may differ, values are compared in the promoted one. Throws
/// DTypeError for an integer literal that the other's dtype cannot represent.
[[nodiscard]] SHARDARRAY_API bool array_equal(const Array& a, const Array& b, Where w = Where::here());

}  // namespace shardarray
