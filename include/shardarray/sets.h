// Sets of values: numpy's names, JAX's types and values. A set is a vector of values that rise, each once; NaN counts as one value.
//
// How many values there are depends on the data. With a `size` the result has so many: what is more is left out, `fill_value`
// stands behind. Without one their number is read, which no trace allows (TraceError). Operands are flattened and, where there are two,
// promoted; flattened they are gathered to be sorted, but for the elements that isin looks for. All throw ShapeError for a negative size.
#pragma once
#include <optional>

#include "shardarray/ops.h"

namespace shardarray {

/// The values in x. `fill_value`: the least one unless given. Throws ShapeError for a size of an x without elements, where no
/// fill_value is given.
inline constexpr struct SHARDARRAY_API unique_fn {
  [[nodiscard]] Array operator()(const Array& x, std::optional<std::int64_t> size = std::nullopt,
                                 std::optional<double> fill_value = std::nullopt,
                                 Where w = Where::here()) const;
} unique{};
/// What unique_all gives: n values.
struct UniqueResult {
  Array values;   ///< [n], rising
  Array indices;  ///< int32 [n]: where each stands first in the flattened x; behind, where the least one does
  Array inverse_indices;  ///< int32, of the shape of x: which of the values each element is
  Array counts;           ///< int32 [n]: how often each stands in x; 0 behind
};
/// The values and where they stand: `unique_all(x, 5).counts`. What is not used is not computed. Throws as unique.
inline constexpr struct SHARDARRAY_API unique_all_fn {
  [[nodiscard]] UniqueResult operator()(const Array& x, std::optional<std::int64_t> size = std::nullopt,
                                        std::optional<double> fill_value = std::nullopt,
                                        Where w = Where::here()) const;
} unique_all{};

/// bool, of the shape of x: is the element one of the values? NaN is none. A binary search: x may be cut and nothing moves.
inline constexpr struct SHARDARRAY_API isin_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& values, Where w = Where::here()) const;
} isin{};

/// The values that stand in a or in b. `fill_value` as of unique, which it throws as.
inline constexpr struct SHARDARRAY_API union1d_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b,
                                 std::optional<std::int64_t> size = std::nullopt,
                                 std::optional<double> fill_value = std::nullopt,
                                 Where w = Where::here()) const;
} union1d{};
/// The values that stand in both. `fill_value`: the least of them unless given; 0 where there is none.
inline constexpr struct SHARDARRAY_API intersect1d_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b,
                                 std::optional<std::int64_t> size = std::nullopt,
                                 std::optional<double> fill_value = std::nullopt,
                                 Where w = Where::here()) const;
} intersect1d{};
/// The values of a that do not stand in b. `fill_value`: 0 unless given.
inline constexpr struct SHARDARRAY_API setdiff1d_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b,
                                 std::optional<std::int64_t> size = std::nullopt,
                                 std::optional<double> fill_value = std::nullopt,
                                 Where w = Where::here()) const;
} setdiff1d{};
/// The values that stand in one of both, but not in the other. `fill_value` as of intersect1d.
inline constexpr struct SHARDARRAY_API setxor1d_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b,
                                 std::optional<std::int64_t> size = std::nullopt,
                                 std::optional<double> fill_value = std::nullopt,
                                 Where w = Where::here()) const;
} setxor1d{};

}  // namespace shardarray
