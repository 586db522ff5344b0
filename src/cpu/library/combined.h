// Combining functions of prefix scans, scatters and updates.
#pragma once
#include <cstdint>
#include <cstring>

#include "base/reducer.h"
#include "runtime/scalar.h"

namespace shardarray {

template <Reducer r, class T> T combined(T a, T b) {
  if constexpr (r == Reducer::none) return b;
  else if constexpr (r == Reducer::sum) return scalar::add(a, b);
  else if constexpr (r == Reducer::prod) return scalar::mul(a, b);
  else if constexpr (r == Reducer::max) return scalar::max(a, b);
  else return scalar::min(a, b);
}

/// to[k] = f(to[k], with[k]), vectorizable: a fixed number is read before any is written.
template <class T, class F> void combine_each(T* to, const T* with, std::int64_t count, const F& f) {
  constexpr std::int64_t few = 16;
  for (; count >= few; count -= few, to += few, with += few) {
    T both[few];
    for (std::int64_t k = 0; k < few; k++) both[k] = f(to[k], with[k]);
    std::memcpy(to, both, sizeof both);
  }
  for (std::int64_t k = 0; k < count; k++) to[k] = f(to[k], with[k]);
}

/// Calls f.template operator()<r>() for the Reducer in a library call's parameter: sum, prod, max or min.
template <class F> auto with_reducer(std::int64_t param, const F& f) {
  switch (static_cast<Reducer>(param)) {
    case Reducer::sum: return f.template operator()<Reducer::sum>();
    case Reducer::prod: return f.template operator()<Reducer::prod>();
    case Reducer::max: return f.template operator()<Reducer::max>();
    default: return f.template operator()<Reducer::min>();
  }
}

}  // namespace shardarray
