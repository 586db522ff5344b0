// What a model is made of.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "shardarray/tree.h"

namespace shardarray {

namespace detail {
SHARDARRAY_API std::string summary_text(const std::vector<std::pair<std::string, Array>>& leaves, Where w);
}  // namespace detail

/// A table of the tree's arrays, a line each and one for all: path, type with the axes that cut it (type_string()), elements,
/// bytes, and where it is computed the bytes that a device holds, the most that any has. Evaluates nothing, throws nothing for
/// given arrays: those that were given away are listed as well. Absent arrays and what is no array are left out.
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
