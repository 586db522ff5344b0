// Checks that a call in our tables (libraries.h) is passed as the library's own header declares it.
#pragma once
#include <type_traits>

namespace shardarray::cuda {

/// Passed the same way: a pointer, a value of the same size, or nothing.
template <class A, class B> constexpr bool same_value() {
  if constexpr (std::is_void_v<A> || std::is_void_v<B>) return std::is_void_v<A> && std::is_void_v<B>;
  else if constexpr (std::is_pointer_v<A> || std::is_pointer_v<B>)
    return std::is_pointer_v<A> && std::is_pointer_v<B>;
  else return sizeof(A) == sizeof(B);
}
template <class R, class... A, class S, class... B> constexpr bool same_call(R (*)(A...), S (*)(B...)) {
  if constexpr (sizeof...(A) != sizeof...(B)) return false;
  else return same_value<R, S>() && (same_value<A, B>() && ...);
}

}  // namespace shardarray::cuda
