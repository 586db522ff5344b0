// Sets of values: NumPy's names, JAX's types and values. A set is a vector of ascending distinct values; NaN counts as one value.
//
// The number of values depends on the data. With a `size` the result has that size: further values are dropped, missing ones are
// `fill_value`. Without it, the number is read, so not inside a trace (TraceError). Operands are flattened and, if there are two,
// promoted; they are gathered to be sorted, except the elements that isin looks up. All throw ShapeError for a negative size.
#pragma once
#include <optional>

#include "shardarray/ops.h"

namespace shardarray {

/// The distinct values of x. `fill_value` defaults to the smallest one. Throws ShapeError for a size with an empty x, unless fill_value
/// is given.
inline constexpr struct SHARDARRAY_API unique_fn {
  [[nodiscard]] Array operator()(const Array& x, std::optional<std::int64_t> size = std::nullopt,
                                 std::optional<double> fill_value = std::nullopt,
                                 Where w = Where::here()) const;
} unique{};
/// The result of unique_all: n values.
struct UniqueResult {
  Array values;   ///< [n], ascending
  Array indices;  ///< int32 [n]: first position of each in the flattened x; padding: as the smallest value
  Array inverse_indices;  ///< int32, of the shape of x: the number of each element's value
  Array counts;           ///< int32 [n]: how often each occurs in x; padding: 0
};
/// The distinct values and their positions: `unique_all(x, 5).counts`. Unused parts are not computed. Throws as unique.
inline constexpr struct SHARDARRAY_API unique_all_fn {
  [[nodiscard]] UniqueResult operator()(const Array& x, std::optional<std::int64_t> size = std::nullopt,
                                        std::optional<double> fill_value = std::nullopt,
                                        Where w = Where::here()) const;
} unique_all{};

/// bool, of the shape of x: whether each element is one of the values; NaN never is. A binary search: a sharded x moves nothing.
inline constexpr struct SHARDARRAY_API isin_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& values, Where w = Where::here()) const;
} isin{};

/// The values in a or in b. `fill_value` and errors as for unique.
inline constexpr struct SHARDARRAY_API union1d_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b,
                                 std::optional<std::int64_t> size = std::nullopt,
                                 std::optional<double> fill_value = std::nullopt,
                                 Where w = Where::here()) const;
} union1d{};
/// The values in both. `fill_value` defaults to the smallest one, or 0 if there is none.
inline constexpr struct SHARDARRAY_API intersect1d_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b,
                                 std::optional<std::int64_t> size = std::nullopt,
                                 std::optional<double> fill_value = std::nullopt,
                                 Where w = Where::here()) const;
} intersect1d{};
/// The values of a that are not in b. `fill_value` defaults to 0.
inline constexpr struct SHARDARRAY_API setdiff1d_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b,
                                 std::optional<std::int64_t> size = std::nullopt,
                                 std::optional<double> fill_value = std::nullopt,
                                 Where w = Where::here()) const;
} setdiff1d{};
/// The values in exactly one of both. `fill_value` as for intersect1d.
inline constexpr struct SHARDARRAY_API setxor1d_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b,
                                 std::optional<std::int64_t> size = std::nullopt,
                                 std::optional<double> fill_value = std::nullopt,
                                 Where w = Where::here()) const;
} setxor1d{};

}  // namespace shardarray
