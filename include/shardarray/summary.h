// A summary of a model's arrays.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "shardarray/tree.h"

namespace shardarray {

namespace detail {
SHARDARRAY_API std::string summary_text(const std::vector<std::pair<std::string, Array>>& leaves, Where w);
}  // namespace detail

/// A table of the tree's arrays, one line each and one for the total: path, type with sharding axes (type_string()), elements, bytes and,
/// for computed arrays, the largest number of bytes held by a device. Never evaluates or throws for given arrays: donated ones are listed
/// too. Absent arrays and non-arrays are omitted.
///
///     std::cout << sa::summary(model);
template <class T> [[nodiscard]] std::string summary(const T& tree, Where w = Where::here()) {
  std::vector<std::pair<std::string, Array>> leaves;
  if constexpr (detail::TreeCheck<T>::ok())
    detail::each_leaf(tree, [&](const Array& a, const Path& p) {
      if (a.has_value()) leaves.emplace_back(p.text(), a);
    });
  return detail::summary_text(leaves, w);
}

}  // namespace shardarray
