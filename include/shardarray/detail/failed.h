// The result of a call that a template has refused: the compiler has said why, and nothing else should fail because of it.
#pragma once
#include <concepts>
#include <initializer_list>
#include <tuple>
#include <type_traits>
#include <utility>

#include "shardarray/array.h"
#include "shardarray/detail/verdict.h"

namespace shardarray::detail {

template <class T> inline constexpr bool is_initializer_list = false;
template <class T> inline constexpr bool is_initializer_list<std::initializer_list<T>> = true;
/// Types that an Array does not convert to. (An initializer_list would make assignments to containers ambiguous.)
template <class T>
concept NotOfArray = !std::convertible_to<const Array&, T> && std::destructible<T> && !is_initializer_list<T>;

/// Works as any result: an Array as an argument or a leaf, the type that it is assigned to, a pair, two names in
/// `auto [a, b] = ..`, a function, a range.
struct Failed : Array {
  template <NotOfArray T> operator T() const;
  template <class T> Failed& operator=(const T&);
  template <class... A> [[nodiscard]] Failed operator()(const A&...) const;
  template <std::size_t> [[nodiscard]] Failed get() const;
  [[nodiscard]] const Failed* begin() const;
  [[nodiscard]] const Failed* end() const;
  static Failed first, second;
};
#define SHARDARRAY_OPERATOR(op) \
  template <class A, class B>   \
  requires(std::same_as<A, Failed> || std::same_as<B, Failed>) Failed operator op(const A&, const B&);
SHARDARRAY_OPERATOR(+)
SHARDARRAY_OPERATOR(-)
SHARDARRAY_OPERATOR(*)
SHARDARRAY_OPERATOR(/)
SHARDARRAY_OPERATOR(%)
SHARDARRAY_OPERATOR(&)
SHARDARRAY_OPERATOR(|)
SHARDARRAY_OPERATOR(^)
SHARDARRAY_OPERATOR(<)
SHARDARRAY_OPERATOR(<=)
SHARDARRAY_OPERATOR(>)
SHARDARRAY_OPERATOR(>=)
SHARDARRAY_OPERATOR(==)
SHARDARRAY_OPERATOR(!=)
#undef SHARDARRAY_OPERATOR
template <std::same_as<Failed> A> Failed operator-(const A&);

/// The leaves of trees.
template <class T>
concept Leaf = std::same_as<T, Array> || std::same_as<T, Failed>;
/// Types that cause no further messages.
template <class T> inline constexpr bool has_failed = std::same_as<T, Failed>;
template <class A, class B>
inline constexpr bool has_failed<std::pair<A, B>> = has_failed<A> || has_failed<B>;
template <class... T> inline constexpr bool has_failed<std::tuple<T...>> = (has_failed<T> || ...);

template <class T> struct TreeVerdict;  // tree.h
template <class T>
requires has_failed<T>
struct TreeVerdict<T> {
  static constexpr bool good = false;
  using Complaint = SaidBefore;
};

template <class R, class... A> std::type_identity<R> declared_result(R (*)(A...));
template <class R, class C, class... A> std::type_identity<R> declared_result(R (C::*)(A...));
template <class R, class C, class... A> std::type_identity<R> declared_result(R (C::*)(A...) const);
template <class R> using refusal_of = std::conditional_t<std::is_void_v<R>, Failed, R>;
template <class F, class... A> consteval auto refused_type() {
  if constexpr (requires { typename F::template RefusedCall<A...>; })
    return std::type_identity<typename F::template RefusedCall<A...>>();
  else if constexpr (requires(F f) { declared_result(f); })
    return decltype(declared_result(std::declval<F>()))();
  else if constexpr (requires { declared_result(&F::operator()); })
    return decltype(declared_result(&F::operator()))();
  else return std::type_identity<Failed>();
}
/// The type of a refused call of F: what F declares, what it returns for any arguments, or Failed.
template <class F, class... A>
using refused_t = refusal_of<std::remove_cvref_t<typename decltype(refused_type<F, A...>())::type>>;
template <class F, class... A> [[nodiscard]] refused_t<F, A...> refused();

}  // namespace shardarray::detail

/// @cond
template <> struct std::tuple_size<shardarray::detail::Failed> : std::integral_constant<std::size_t, 2> {};
template <std::size_t I> struct std::tuple_element<I, shardarray::detail::Failed> {
  using type = shardarray::detail::Failed;
};
/// @endcond
