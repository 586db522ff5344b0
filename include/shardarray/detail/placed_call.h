// The user's line for calls with any number of arguments, after which no default argument can follow.
#pragma once
#include <concepts>
#include <tuple>
#include <type_traits>
#include <utility>

#include "shardarray/detail/verdict.h"
#include "shardarray/error.h"

// SHARDARRAY_n(X) is X(1), ..., X(n). The operators themselves are no macros: compilers would mention each in every message.
#define SHARDARRAY_1(X) X(1)
#define SHARDARRAY_2(X) SHARDARRAY_1(X), X(2)
#define SHARDARRAY_3(X) SHARDARRAY_2(X), X(3)
#define SHARDARRAY_4(X) SHARDARRAY_3(X), X(4)
#define SHARDARRAY_5(X) SHARDARRAY_4(X), X(5)
#define SHARDARRAY_6(X) SHARDARRAY_5(X), X(6)
#define SHARDARRAY_7(X) SHARDARRAY_6(X), X(7)
#define SHARDARRAY_8(X) SHARDARRAY_7(X), X(8)
#define SHARDARRAY_9(X) SHARDARRAY_8(X), X(9)
#define SHARDARRAY_10(X) SHARDARRAY_9(X), X(10)
#define SHARDARRAY_11(X) SHARDARRAY_10(X), X(11)
#define SHARDARRAY_12(X) SHARDARRAY_11(X), X(12)
#define SHARDARRAY_13(X) SHARDARRAY_12(X), X(13)
#define SHARDARRAY_14(X) SHARDARRAY_13(X), X(14)
#define SHARDARRAY_15(X) SHARDARRAY_14(X), X(15)
#define SHARDARRAY_16(X) SHARDARRAY_15(X), X(16)
#define SHARDARRAY_TYPE(k) class A##k
#define SHARDARRAY_TAKEN(k) A##k&& a##k
#define SHARDARRAY_PASSED(k) std::forward<A##k>(a##k)
#define SHARDARRAY_NAMED(k) std::remove_cvref_t<A##k>
#define SHARDARRAY_ENTERED(k) std::declval<typename Entry::template At<(k)>>()
// W is always Where: a call with more arguments does not match. S is Self, complete by then.
// clang-format off
#define SHARDARRAY_PARAMETERS(list)                                                                               \
  list(SHARDARRAY_TYPE), std::same_as<Where> W = Where,                                                           \
  class S = std::conditional_t<std::same_as<W, Where> && no_place<list(SHARDARRAY_NAMED)>, Self, TakesAnything>,  \
  class Entry = typename S::template Entry<list(SHARDARRAY_NAMED)>,                                               \
  bool = requires(const typename Entry::Function& f) { f(list(SHARDARRAY_ENTERED)); }
#define SHARDARRAY_JUDGED(list)       \
  no_place<list(SHARDARRAY_NAMED)> && \
  (Judged<typename S::template Verdict<list(SHARDARRAY_NAMED)>>::ok() || true)
// clang-format on

namespace shardarray::detail {

/// Rethrows, with a place if the error has none.
[[noreturn]] inline void rethrow_with(Error& error, Where w) {
  error.add_place(w);
  throw;
}

/// Whether none of the argument types is Where.
template <class... A> inline constexpr bool no_place = !(std::same_as<A, Where> || ...);
/// The function that PlacedCall checks, and its parameter types: F and A, if the arguments are trees; else one that takes anything.
template <bool are_trees, class F, class... A> struct EntryOf {
  using Function = F;
  template <std::size_t k> using At = std::tuple_element_t<k - 1, std::tuple<A...>>;
};
struct TakesAnything {
  template <class... A> using Entry = EntryOf<true, TakesAnything, A...>;
  template <class... A> void operator()(A&&...) const;
};
template <class F, class... A> struct EntryOf<false, F, A...> : EntryOf<true, TakesAnything, A...> {};

/// The call operator of what jit, grad, vmap and their kin return: it calls Self's `call(line, args...)`. An error without a place
/// gets that of the call; calls that do not throw cost nothing. Calls with more than sixteen arguments have no line.
///
/// Self::Entry<A...>, an EntryOf, and Self::Verdict<A...> are checked here, so that compilers' messages about a function's body and about
/// a call have a short path to the user's line.
template <class Self> class PlacedCall {
 public:
  auto operator()(Where w = Where::here()) const try { return self().call(w); } catch (Error& error) {
    rethrow_with(error, w);
  }
  template <SHARDARRAY_PARAMETERS(SHARDARRAY_1)>
  requires SHARDARRAY_JUDGED(SHARDARRAY_1)
  auto operator()(SHARDARRAY_1(SHARDARRAY_TAKEN), W w = Where::here()) const try {
    return self().call(w, SHARDARRAY_1(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_PARAMETERS(SHARDARRAY_2)>
  requires SHARDARRAY_JUDGED(SHARDARRAY_2)
  auto operator()(SHARDARRAY_2(SHARDARRAY_TAKEN), W w = Where::here()) const try {
    return self().call(w, SHARDARRAY_2(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_PARAMETERS(SHARDARRAY_3)>
  requires SHARDARRAY_JUDGED(SHARDARRAY_3)
  auto operator()(SHARDARRAY_3(SHARDARRAY_TAKEN), W w = Where::here()) const try {
    return self().call(w, SHARDARRAY_3(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_PARAMETERS(SHARDARRAY_4)>
  requires SHARDARRAY_JUDGED(SHARDARRAY_4)
  auto operator()(SHARDARRAY_4(SHARDARRAY_TAKEN), W w = Where::here()) const try {
    return self().call(w, SHARDARRAY_4(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_PARAMETERS(SHARDARRAY_5)>
  requires SHARDARRAY_JUDGED(SHARDARRAY_5)
  auto operator()(SHARDARRAY_5(SHARDARRAY_TAKEN), W w = Where::here()) const try {
    return self().call(w, SHARDARRAY_5(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_PARAMETERS(SHARDARRAY_6)>
  requires SHARDARRAY_JUDGED(SHARDARRAY_6)
  auto operator()(SHARDARRAY_6(SHARDARRAY_TAKEN), W w = Where::here()) const try {
    return self().call(w, SHARDARRAY_6(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_PARAMETERS(SHARDARRAY_7)>
  requires SHARDARRAY_JUDGED(SHARDARRAY_7)
  auto operator()(SHARDARRAY_7(SHARDARRAY_TAKEN), W w = Where::here()) const try {
    return self().call(w, SHARDARRAY_7(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_PARAMETERS(SHARDARRAY_8)>
  requires SHARDARRAY_JUDGED(SHARDARRAY_8)
  auto operator()(SHARDARRAY_8(SHARDARRAY_TAKEN), W w = Where::here()) const try {
    return self().call(w, SHARDARRAY_8(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_PARAMETERS(SHARDARRAY_9)>
  requires SHARDARRAY_JUDGED(SHARDARRAY_9)
  auto operator()(SHARDARRAY_9(SHARDARRAY_TAKEN), W w = Where::here()) const try {
    return self().call(w, SHARDARRAY_9(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_PARAMETERS(SHARDARRAY_10)>
  requires SHARDARRAY_JUDGED(SHARDARRAY_10)
  auto operator()(SHARDARRAY_10(SHARDARRAY_TAKEN), W w = Where::here()) const try {
    return self().call(w, SHARDARRAY_10(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_PARAMETERS(SHARDARRAY_11)>
  requires SHARDARRAY_JUDGED(SHARDARRAY_11)
  auto operator()(SHARDARRAY_11(SHARDARRAY_TAKEN), W w = Where::here()) const try {
    return self().call(w, SHARDARRAY_11(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_PARAMETERS(SHARDARRAY_12)>
  requires SHARDARRAY_JUDGED(SHARDARRAY_12)
  auto operator()(SHARDARRAY_12(SHARDARRAY_TAKEN), W w = Where::here()) const try {
    return self().call(w, SHARDARRAY_12(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_PARAMETERS(SHARDARRAY_13)>
  requires SHARDARRAY_JUDGED(SHARDARRAY_13)
  auto operator()(SHARDARRAY_13(SHARDARRAY_TAKEN), W w = Where::here()) const try {
    return self().call(w, SHARDARRAY_13(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_PARAMETERS(SHARDARRAY_14)>
  requires SHARDARRAY_JUDGED(SHARDARRAY_14)
  auto operator()(SHARDARRAY_14(SHARDARRAY_TAKEN), W w = Where::here()) const try {
    return self().call(w, SHARDARRAY_14(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_PARAMETERS(SHARDARRAY_15)>
  requires SHARDARRAY_JUDGED(SHARDARRAY_15)
  auto operator()(SHARDARRAY_15(SHARDARRAY_TAKEN), W w = Where::here()) const try {
    return self().call(w, SHARDARRAY_15(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_PARAMETERS(SHARDARRAY_16)>
  requires SHARDARRAY_JUDGED(SHARDARRAY_16)
  auto operator()(SHARDARRAY_16(SHARDARRAY_TAKEN), W w = Where::here()) const try {
    return self().call(w, SHARDARRAY_16(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <class... A>
  requires(sizeof...(A) > 16) auto operator()(A&&... args) const {
    return self().call(Where(), std::forward<A>(args)...);
  }

 private:
  const Self& self() const { return static_cast<const Self&>(*this); }
};

/// The same for a function of the library, whose result must not be discarded:
/// `constexpr PlacedFunction<combine_fn> combine{}` is called as combine_fn::call(line, args...).
template <class F> class PlacedFunction : public F {
 public:
  [[nodiscard]] auto operator()(Where w = Where::here()) const try {
    return self().call(w);
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_1(SHARDARRAY_TYPE)>
  [[nodiscard]] auto operator()(SHARDARRAY_1(SHARDARRAY_TAKEN), Where w = Where::here()) const try {
    return self().call(w, SHARDARRAY_1(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_2(SHARDARRAY_TYPE)>
  [[nodiscard]] auto operator()(SHARDARRAY_2(SHARDARRAY_TAKEN), Where w = Where::here()) const try {
    return self().call(w, SHARDARRAY_2(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_3(SHARDARRAY_TYPE)>
  [[nodiscard]] auto operator()(SHARDARRAY_3(SHARDARRAY_TAKEN), Where w = Where::here()) const try {
    return self().call(w, SHARDARRAY_3(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_4(SHARDARRAY_TYPE)>
  [[nodiscard]] auto operator()(SHARDARRAY_4(SHARDARRAY_TAKEN), Where w = Where::here()) const try {
    return self().call(w, SHARDARRAY_4(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_5(SHARDARRAY_TYPE)>
  [[nodiscard]] auto operator()(SHARDARRAY_5(SHARDARRAY_TAKEN), Where w = Where::here()) const try {
    return self().call(w, SHARDARRAY_5(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_6(SHARDARRAY_TYPE)>
  [[nodiscard]] auto operator()(SHARDARRAY_6(SHARDARRAY_TAKEN), Where w = Where::here()) const try {
    return self().call(w, SHARDARRAY_6(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_7(SHARDARRAY_TYPE)>
  [[nodiscard]] auto operator()(SHARDARRAY_7(SHARDARRAY_TAKEN), Where w = Where::here()) const try {
    return self().call(w, SHARDARRAY_7(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_8(SHARDARRAY_TYPE)>
  [[nodiscard]] auto operator()(SHARDARRAY_8(SHARDARRAY_TAKEN), Where w = Where::here()) const try {
    return self().call(w, SHARDARRAY_8(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_9(SHARDARRAY_TYPE)>
  [[nodiscard]] auto operator()(SHARDARRAY_9(SHARDARRAY_TAKEN), Where w = Where::here()) const try {
    return self().call(w, SHARDARRAY_9(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_10(SHARDARRAY_TYPE)>
  [[nodiscard]] auto operator()(SHARDARRAY_10(SHARDARRAY_TAKEN), Where w = Where::here()) const try {
    return self().call(w, SHARDARRAY_10(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_11(SHARDARRAY_TYPE)>
  [[nodiscard]] auto operator()(SHARDARRAY_11(SHARDARRAY_TAKEN), Where w = Where::here()) const try {
    return self().call(w, SHARDARRAY_11(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_12(SHARDARRAY_TYPE)>
  [[nodiscard]] auto operator()(SHARDARRAY_12(SHARDARRAY_TAKEN), Where w = Where::here()) const try {
    return self().call(w, SHARDARRAY_12(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_13(SHARDARRAY_TYPE)>
  [[nodiscard]] auto operator()(SHARDARRAY_13(SHARDARRAY_TAKEN), Where w = Where::here()) const try {
    return self().call(w, SHARDARRAY_13(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_14(SHARDARRAY_TYPE)>
  [[nodiscard]] auto operator()(SHARDARRAY_14(SHARDARRAY_TAKEN), Where w = Where::here()) const try {
    return self().call(w, SHARDARRAY_14(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_15(SHARDARRAY_TYPE)>
  [[nodiscard]] auto operator()(SHARDARRAY_15(SHARDARRAY_TAKEN), Where w = Where::here()) const try {
    return self().call(w, SHARDARRAY_15(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_16(SHARDARRAY_TYPE)>
  [[nodiscard]] auto operator()(SHARDARRAY_16(SHARDARRAY_TAKEN), Where w = Where::here()) const try {
    return self().call(w, SHARDARRAY_16(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <class... A>
  requires(sizeof...(A) > 16) [[nodiscard]] auto operator()(A&&... args) const {
    return self().call(Where(), std::forward<A>(args)...);
  }

 private:
  const F& self() const { return *this; }
};

}  // namespace shardarray::detail

#undef SHARDARRAY_1
#undef SHARDARRAY_2
#undef SHARDARRAY_3
#undef SHARDARRAY_4
#undef SHARDARRAY_5
#undef SHARDARRAY_6
#undef SHARDARRAY_7
#undef SHARDARRAY_8
#undef SHARDARRAY_9
#undef SHARDARRAY_10
#undef SHARDARRAY_11
#undef SHARDARRAY_12
#undef SHARDARRAY_13
#undef SHARDARRAY_14
#undef SHARDARRAY_15
#undef SHARDARRAY_16
#undef SHARDARRAY_TYPE
#undef SHARDARRAY_TAKEN
#undef SHARDARRAY_PASSED
#undef SHARDARRAY_NAMED
#undef SHARDARRAY_ENTERED
#undef SHARDARRAY_PARAMETERS
#undef SHARDARRAY_JUDGED
