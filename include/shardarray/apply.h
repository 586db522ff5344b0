// Functions applied along an axis, and functions selected element by element: NumPy's names.
#pragma once
#include <functional>
#include <initializer_list>
#include <utility>
#include <vector>

#include "shardarray/ops.h"
#include "shardarray/vmap.h"

namespace shardarray {

namespace core {

/// f of each vector along the axis, which is replaced by the dimensions of its result.
SHARDARRAY_API Array apply_along_axis(const std::function<Array(const Array&)>& f, std::int64_t axis,
                                      const Array& x, Where w);
/// One value more than conditions: that of the last true condition, else the last value. In the dtype of x.
SHARDARRAY_API Array piecewise(const Array& x, const std::vector<Array>& conditions,
                               const std::vector<Array>& values, Where w);

}  // namespace core

/// Applies f to each vector along an axis: a vmap over the other ones. The axis is replaced by the dimensions of f's result.
/// `apply_along_axis(sa::sort, 0, x)`. Throws ShapeError for an axis that x does not have, and as f.
inline constexpr struct apply_along_axis_fn {
  template <std::invocable<const Array&> F>
  [[nodiscard]] Array operator()(const F& f, std::int64_t axis, const Array& x,
                                 Where w = Where::here()) const {
    static_assert(std::convertible_to<std::invoke_result_t<const F&, const Array&>, Array>,
                  "apply_along_axis: the function must take an array and return one");
    return core::apply_along_axis([&](const Array& v) -> Array { return f(v); }, axis, x, w);
  }
} apply_along_axis{};
/// Applies f(x, {.axis = a, .keepdims = true}) for one axis after the other, to the previous result:
/// `apply_over_axes(sa::sum, x, {0, 2})`. Throws as f.
inline constexpr struct apply_over_axes_fn {
  template <class F>
  [[nodiscard]] Array operator()(const F& f, const Array& x, const Shape& axes,
                                 Where w = Where::here()) const {
    Array y = x;
    for (const std::int64_t a : axes) y = f(y, ReduceOptions{.axis = a, .keepdims = true}, w);
    return y;
  }
} apply_over_axes{};

/// The conditions of piecewise, with the caller's line.
struct PiecewiseConditions {
  PiecewiseConditions(std::initializer_list<Array> c, Where w = Where::here()) : conditions(c), where(w) {}
  PiecewiseConditions(std::vector<Array> c, Where w = Where::here()) : conditions(std::move(c)), where(w) {}
  std::vector<Array> conditions;
  Where where;
};
/// Per element, the function (or number) of the last true condition; if none is, the extra one at the end, or 0:
///
///     piecewise(x, {x < 0, x > 1}, sa::exp, sa::log, 0.5)
///
/// Every function is computed everywhere; as with where, a NaN derivative of an unselected function gives NaN. In the dtype of x. Throws
/// ShapeError unless there are as many functions as conditions, or one more, and if shapes cannot be broadcast.
inline constexpr struct piecewise_fn {
  template <class... F>
  [[nodiscard]] Array operator()(const Array& x, const PiecewiseConditions& c, const F&... functions) const {
    const auto value = [&](const auto& f) -> Array {
      if constexpr (std::invocable<decltype(f), const Array&>) return f(x);
      else return Array(f);
    };
    return core::piecewise(x, c.conditions, std::vector<Array>{value(functions)...}, c.where);
  }
} piecewise{};

}  // namespace shardarray
