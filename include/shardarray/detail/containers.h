// The standard library's types that trees may consist of.
#pragma once
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace shardarray::detail {

template <class> inline constexpr bool is_sequence = false;
template <class T, class A> inline constexpr bool is_sequence<std::vector<T, A>> = true;
template <class A> inline constexpr bool is_sequence<std::vector<bool, A>> = false;
template <class T, std::size_t N> inline constexpr bool is_sequence<std::array<T, N>> = true;
template <class> inline constexpr bool is_optional = false;
template <class T> inline constexpr bool is_optional<std::optional<T>> = true;
template <class> inline constexpr bool is_map = false;
template <class K, class V, class C, class A> inline constexpr bool is_map<std::map<K, V, C, A>> = true;
template <class> inline constexpr bool is_tuple = false;
template <class... T> inline constexpr bool is_tuple<std::tuple<T...>> = true;
template <class A, class B> inline constexpr bool is_tuple<std::pair<A, B>> = true;
template <class> inline constexpr bool is_std_function = false;
template <class R, class... A> inline constexpr bool is_std_function<std::function<R(A...)>> = true;

}  // namespace shardarray::detail
