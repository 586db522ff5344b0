// associative_scan: running combinations of the parts of arrays along an axis, by any associative function.
#pragma once
#include "shardarray/control_flow.h"

namespace shardarray {

/// Options of associative_scan().
struct AssociativeScanOptions {
  std::int64_t axis = 0;  ///< of every array; negative ones count from the end
  bool reverse = false;   ///< from the last part to the first
};

namespace core {

using CombineBody = detail::FunctionRef<Arrays(std::span<const Array>, std::span<const Array>)>;
SHARDARRAY_API Arrays associative_scan(CombineBody f, std::span<const ScanLeaf> elements,
                                       const AssociativeScanOptions& options, Where w);

}  // namespace core

/// Running combinations along an axis: part k of the result is f(..f(f(part 0, part 1), part 2).., part k), where f is associative:
///
///     // h = a * h + b, for all steps at once
///     const auto [a, h] = associative_scan(
///         [](const Pair& p, const Pair& q) { return Pair{p.a * q.a, q.a * p.b + q.b}; }, Pair{decay, input});
///
/// f combines many parts at once: its arguments are trees like `elements`, of any length along the axis, and it gives one of their
/// shapes and dtypes, each part from the same part of both. It is called about 2 log2(n) times and combines less than 2 n parts.
/// Reverse: that of the reversed arrays, reversed: f(f(last part, the one in front of it).., part k).
/// Where the axis is cut, nothing is gathered: if each device has 2^k parts, a part or two move between neighbours for each call of f.
///
/// Throws ShapeError where an array lacks the axis, where their lengths along it differ, and where f gives other shapes; DTypeError
/// for other dtypes; TreeError where there is no array, and for another structure. Source: jax.lax.associative_scan.
template <class F, class T>
[[nodiscard]] T associative_scan(const F& f, const T& elements, const AssociativeScanOptions& options = {},
                                 Where w = Where::here()) {
  if constexpr (detail::TreeCheck<T>::ok()) {
    constexpr bool fits = std::is_invocable_r_v<T, const F&, const T&, const T&>;
    static_assert(fits,
                  "associative_scan: the function must take two trees like the elements and return a third");
    if constexpr (fits) {
      detail::Structure s = detail::structure(elements, false);
      T a = elements, b = elements;
      const auto of_arrays = [&](std::span<const Array> left, std::span<const Array> right) {
        detail::set_slots(a, left);
        detail::set_slots(b, right);
        const T result = f(std::as_const(a), std::as_const(b));
        return detail::slots_like(s, result, 1, "associative_scan");
      };
      T result = elements;
      detail::set_slots(result, core::associative_scan(of_arrays, detail::scan_leaves(elements), options, w));
      return result;
    }
  }
  return elements;
}

}  // namespace shardarray
