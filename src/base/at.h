// Container elements by the signed indices that graphs and programs use.
#pragma once
#include <cstddef>

namespace shardarray {

/// v[k], without the bounds check of `v.at(k)`.
template <class V> auto at(V& v, int k) -> decltype(v[static_cast<std::size_t>(k)]) {
  return v[static_cast<std::size_t>(k)];
}

}  // namespace shardarray
