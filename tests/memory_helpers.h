// What tests of memory and of donation share.
#pragma once
#include <string>
#include <vector>

#include "everywhere.h"
#include "execute/evaluate.h"
#include "shardarray/shardarray.h"

namespace memory_helpers {

namespace sa = shardarray;
using sa::Array;
using sa::testing::values;
using Values = std::vector<double>;

inline std::vector<const void*> addresses(const Array& x) {
  std::vector<const void*> p;
  for (const sa::BufferRef& b : sa::value_of(x)->buffers) p.push_back(b->data);
  return p;
}
template <class E, class F> std::string error(const F& f) {
  try {
    f();
  } catch (const E& e) { return e.text(); }
  return "no such error";
}
inline Array numbers(std::int64_t n) {
  std::vector<float> v(static_cast<std::size_t>(n));
  for (std::size_t k = 0; k < v.size(); k++) v[k] = static_cast<float>(k % 17) - 8;
  return sa::array(v);
}

}  // namespace memory_helpers
