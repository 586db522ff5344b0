// associative_scan: prefix scans of arrays along an axis with any associative function.
#pragma once
#include "shardarray/control_flow.h"

namespace shardarray {

/// Options of associative_scan().
struct AssociativeScanOptions {
  std::int64_t axis = 0;  ///< of every array; negative ones count from the end
  bool reverse = false;   ///< from last to first
};

namespace core {

using CombineBody = detail::FunctionRef<Arrays(std::span<const Array>, std::span<const Array>)>;
SHARDARRAY_API Arrays associative_scan(CombineBody f, std::span<const ScanLeaf> elements,
                                       const AssociativeScanOptions& options, Where w);

}  // namespace core

/// A prefix scan along an axis: slice k of the result is f(..f(f(slice 0, slice 1), slice 2).., slice k) for an associative f:
///
///     // h = a * h + b, for all steps at once
///     const auto [a, h] = associative_scan(
///         [](const Pair& p, const Pair& q) { return Pair{p.a * q.a, q.a * p.b + q.b}; }, Pair{decay, input});
///
/// f combines many slices at once: its arguments are trees like `elements`, of any length along the axis, and it returns one with their
/// shapes and dtypes, combining corresponding slices. It is called about 2 log2(n) times and combines less than 2 n slices. With reverse,
/// arrays are scanned backwards: f(f(last slice, the one before).., slice k). Along a sharded axis nothing is gathered: if each device
/// has 2^k slices, one or two move between neighbours per call of f.
///
/// Throws ShapeError if an array lacks the axis, if lengths along it differ, and if f returns other shapes; DTypeError for other dtypes;
/// TreeError if there is no array, and for another structure. Source: jax.lax.associative_scan.
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
