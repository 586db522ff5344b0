// The fields of an aggregate: their number, references to them, their names. The user declares nothing: fields are counted by
// brace initialisation, bound by structured bindings, and named by the compiler's __PRETTY_FUNCTION__.
#pragma once
#include <array>
#include <concepts>
#include <cstddef>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

namespace shardarray::detail {

// What is declared here without a definition is never called or read: only its type and name are used.
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"
#pragma clang diagnostic ignored "-Wundefined-internal"
#endif

inline constexpr std::size_t max_fields = 40;

/// Converts to the type of every field, never to the struct itself or one of its bases.
template <class Whole> struct AnyField {
  template <class T>
  requires(!std::is_base_of_v<std::remove_cvref_t<T>, Whole>) operator T() const;
};
/// Converts to a base of the struct only.
template <class Whole> struct AnyBase {
  template <class T>
  requires(std::is_base_of_v<T, Whole> && !std::same_as<T, Whole>) constexpr operator T() const;
};
template <class T>
concept HasBase = std::is_aggregate_v<T> && requires {
  T{AnyBase<T>{}};
};

template <class T, std::size_t... I> consteval bool takes(std::index_sequence<I...>) {
  return requires { T{((void)I, AnyField<T>{})...}; };
}
/// The largest number of initialisers up to max_fields + 1; 0 if none works. Members without a default constructor make small
/// numbers ill formed: those are skipped until the first that works.
template <class T, std::size_t N = 0, bool Found = false> consteval std::size_t count_initialisers() {
  if constexpr (N > max_fields + 1) return Found ? N - 1 : 0;
  else if constexpr (takes<T>(std::make_index_sequence<N>{})) return count_initialisers<T, N + 1, true>();
  else if constexpr (Found) return N - 1;
  else return count_initialisers<T, N + 1, false>();
}
template <class T> inline constexpr std::size_t field_count = count_initialisers<T>();

template <class T, std::size_t... I, std::size_t... J>
consteval bool takes_brace(std::index_sequence<I...>, std::index_sequence<J...>) {
  return requires { T{((void)I, AnyField<T>{})..., {}, ((void)J, AnyField<T>{})...}; };
}
/// A C array takes several initialisers, so that field_count counts its elements; `{}` initialises all of it.
template <class T> consteval bool has_c_array() {
  constexpr std::size_t n = field_count<T>;
  return []<std::size_t... I>(std::index_sequence<I...>) {
    return ((!takes_brace<T>(std::make_index_sequence<I>{}, std::make_index_sequence<n - I - 1>{}) &&
             takes_brace<T>(std::make_index_sequence<I>{}, std::index_sequence<>{})) ||
            ...);
  }
  (std::make_index_sequence<n>{});
}

#define SHARDARRAY_A a0, a1, a2, a3, a4, a5, a6, a7, a8, a9
#define SHARDARRAY_B SHARDARRAY_A, b0, b1, b2, b3, b4, b5, b6, b7, b8, b9
#define SHARDARRAY_C SHARDARRAY_B, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9
#define SHARDARRAY_D SHARDARRAY_C, d0, d1, d2, d3, d4, d5, d6, d7, d8, d9
#define SHARDARRAY_BIND(n, ...)             \
  else if constexpr (field_count<U> == n) { \
    auto& [__VA_ARGS__] = t;                \
    return f(__VA_ARGS__);                  \
  }
/// f(fields...), as references.
template <class T, class F> constexpr decltype(auto) with_fields(T& t, F&& f) {
  using U = std::remove_const_t<T>;
  if constexpr (field_count<U> == 0) return f();
  SHARDARRAY_BIND(1, a0)
  SHARDARRAY_BIND(2, a0, a1)
  SHARDARRAY_BIND(3, a0, a1, a2)
  SHARDARRAY_BIND(4, a0, a1, a2, a3)
  SHARDARRAY_BIND(5, a0, a1, a2, a3, a4)
  SHARDARRAY_BIND(6, a0, a1, a2, a3, a4, a5)
  SHARDARRAY_BIND(7, a0, a1, a2, a3, a4, a5, a6)
  SHARDARRAY_BIND(8, a0, a1, a2, a3, a4, a5, a6, a7)
  SHARDARRAY_BIND(9, a0, a1, a2, a3, a4, a5, a6, a7, a8)
  SHARDARRAY_BIND(10, SHARDARRAY_A)
  SHARDARRAY_BIND(11, SHARDARRAY_A, b0)
  SHARDARRAY_BIND(12, SHARDARRAY_A, b0, b1)
  SHARDARRAY_BIND(13, SHARDARRAY_A, b0, b1, b2)
  SHARDARRAY_BIND(14, SHARDARRAY_A, b0, b1, b2, b3)
  SHARDARRAY_BIND(15, SHARDARRAY_A, b0, b1, b2, b3, b4)
  SHARDARRAY_BIND(16, SHARDARRAY_A, b0, b1, b2, b3, b4, b5)
  SHARDARRAY_BIND(17, SHARDARRAY_A, b0, b1, b2, b3, b4, b5, b6)
  SHARDARRAY_BIND(18, SHARDARRAY_A, b0, b1, b2, b3, b4, b5, b6, b7)
  SHARDARRAY_BIND(19, SHARDARRAY_A, b0, b1, b2, b3, b4, b5, b6, b7, b8)
  SHARDARRAY_BIND(20, SHARDARRAY_B)
  SHARDARRAY_BIND(21, SHARDARRAY_B, c0)
  SHARDARRAY_BIND(22, SHARDARRAY_B, c0, c1)
  SHARDARRAY_BIND(23, SHARDARRAY_B, c0, c1, c2)
  SHARDARRAY_BIND(24, SHARDARRAY_B, c0, c1, c2, c3)
  SHARDARRAY_BIND(25, SHARDARRAY_B, c0, c1, c2, c3, c4)
  SHARDARRAY_BIND(26, SHARDARRAY_B, c0, c1, c2, c3, c4, c5)
  SHARDARRAY_BIND(27, SHARDARRAY_B, c0, c1, c2, c3, c4, c5, c6)
  SHARDARRAY_BIND(28, SHARDARRAY_B, c0, c1, c2, c3, c4, c5, c6, c7)
  SHARDARRAY_BIND(29, SHARDARRAY_B, c0, c1, c2, c3, c4, c5, c6, c7, c8)
  SHARDARRAY_BIND(30, SHARDARRAY_C)
  SHARDARRAY_BIND(31, SHARDARRAY_C, d0)
  SHARDARRAY_BIND(32, SHARDARRAY_C, d0, d1)
  SHARDARRAY_BIND(33, SHARDARRAY_C, d0, d1, d2)
  SHARDARRAY_BIND(34, SHARDARRAY_C, d0, d1, d2, d3)
  SHARDARRAY_BIND(35, SHARDARRAY_C, d0, d1, d2, d3, d4)
  SHARDARRAY_BIND(36, SHARDARRAY_C, d0, d1, d2, d3, d4, d5)
  SHARDARRAY_BIND(37, SHARDARRAY_C, d0, d1, d2, d3, d4, d5, d6)
  SHARDARRAY_BIND(38, SHARDARRAY_C, d0, d1, d2, d3, d4, d5, d6, d7)
  SHARDARRAY_BIND(39, SHARDARRAY_C, d0, d1, d2, d3, d4, d5, d6, d7, d8)
  SHARDARRAY_BIND(40, SHARDARRAY_D)
}
#undef SHARDARRAY_BIND
#undef SHARDARRAY_A
#undef SHARDARRAY_B
#undef SHARDARRAY_C
#undef SHARDARRAY_D

template <class T> struct Wrap { T value; };
template <class T>
extern const Wrap<T> fake;  // never defined: the compiler only prints the address of a member
// clang < 18 refuses the address of a member as template argument, but not inside a struct.
template <class P> struct Address { P p; };
template <class P> Address(P) -> Address<P>;
template <auto A> consteval std::string_view text_of() { return __PRETTY_FUNCTION__; }

template <std::size_t K, class F, class... Rest> constexpr auto nth_address(F& first, Rest&... rest) {
  if constexpr (K == 0) return std::addressof(first);
  else return nth_address<K - 1>(rest...);
}
template <class T, std::size_t K> consteval std::string_view field_name() {
  constexpr auto p = with_fields(fake<T>.value, [](auto&... fields) { return nth_address<K>(fields...); });
  std::string_view s =
      text_of<Address{p}>();  // "...Address<...>{(& ...Linear::weight)}]" or "...{&fake.value.weight}]"
  s = s.substr(0, s.find_last_of('}'));
  if (s.ends_with(')')) s.remove_suffix(1);
  return s.substr(s.find_last_of(":.") + 1);
}
template <class T, std::size_t... K>
consteval std::array<std::string_view, sizeof...(K)> list_field_names(std::index_sequence<K...>) {
  return {field_name<T, K>()...};
}
template <class T>
inline constexpr auto field_names = list_field_names<T>(std::make_index_sequence<field_count<T>>{});
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

}  // namespace shardarray::detail
