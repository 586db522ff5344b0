// The line of a call that takes any number of arguments, behind which no default argument can stand.
#pragma once
#include <utility>

#include "shardarray/error.h"

// SHARDARRAY_n(X) is X(1), ..., X(n). The operators themselves are no macros: compilers would tell of each in every message.
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

namespace shardarray::detail {

/// Throws on, with a place if the error has none.
[[noreturn]] inline void rethrow_with(Error& error, Where w) {
  error.add_place(w);
  throw;
}

/// The call operator of what jit, grad, vmap and their kin return: `call(line, args...)` of Self. An error that has no place yet
/// gets that of the call; nothing is done for a call that throws none. Calls of more than sixteen arguments have no line.
template <class Self> class PlacedCall {
 public:
  auto operator()(Where w = Where::here()) const try { return self().call(w); } catch (Error& error) {
    rethrow_with(error, w);
  }
  template <SHARDARRAY_1(SHARDARRAY_TYPE)>
  auto operator()(SHARDARRAY_1(SHARDARRAY_TAKEN), Where w = Where::here()) const try {
    return self().call(w, SHARDARRAY_1(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_2(SHARDARRAY_TYPE)>
  auto operator()(SHARDARRAY_2(SHARDARRAY_TAKEN), Where w = Where::here()) const try {
    return self().call(w, SHARDARRAY_2(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_3(SHARDARRAY_TYPE)>
  auto operator()(SHARDARRAY_3(SHARDARRAY_TAKEN), Where w = Where::here()) const try {
    return self().call(w, SHARDARRAY_3(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_4(SHARDARRAY_TYPE)>
  auto operator()(SHARDARRAY_4(SHARDARRAY_TAKEN), Where w = Where::here()) const try {
    return self().call(w, SHARDARRAY_4(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_5(SHARDARRAY_TYPE)>
  auto operator()(SHARDARRAY_5(SHARDARRAY_TAKEN), Where w = Where::here()) const try {
    return self().call(w, SHARDARRAY_5(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_6(SHARDARRAY_TYPE)>
  auto operator()(SHARDARRAY_6(SHARDARRAY_TAKEN), Where w = Where::here()) const try {
    return self().call(w, SHARDARRAY_6(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_7(SHARDARRAY_TYPE)>
  auto operator()(SHARDARRAY_7(SHARDARRAY_TAKEN), Where w = Where::here()) const try {
    return self().call(w, SHARDARRAY_7(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_8(SHARDARRAY_TYPE)>
  auto operator()(SHARDARRAY_8(SHARDARRAY_TAKEN), Where w = Where::here()) const try {
    return self().call(w, SHARDARRAY_8(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_9(SHARDARRAY_TYPE)>
  auto operator()(SHARDARRAY_9(SHARDARRAY_TAKEN), Where w = Where::here()) const try {
    return self().call(w, SHARDARRAY_9(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_10(SHARDARRAY_TYPE)>
  auto operator()(SHARDARRAY_10(SHARDARRAY_TAKEN), Where w = Where::here()) const try {
    return self().call(w, SHARDARRAY_10(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_11(SHARDARRAY_TYPE)>
  auto operator()(SHARDARRAY_11(SHARDARRAY_TAKEN), Where w = Where::here()) const try {
    return self().call(w, SHARDARRAY_11(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_12(SHARDARRAY_TYPE)>
  auto operator()(SHARDARRAY_12(SHARDARRAY_TAKEN), Where w = Where::here()) const try {
    return self().call(w, SHARDARRAY_12(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_13(SHARDARRAY_TYPE)>
  auto operator()(SHARDARRAY_13(SHARDARRAY_TAKEN), Where w = Where::here()) const try {
    return self().call(w, SHARDARRAY_13(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_14(SHARDARRAY_TYPE)>
  auto operator()(SHARDARRAY_14(SHARDARRAY_TAKEN), Where w = Where::here()) const try {
    return self().call(w, SHARDARRAY_14(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_15(SHARDARRAY_TYPE)>
  auto operator()(SHARDARRAY_15(SHARDARRAY_TAKEN), Where w = Where::here()) const try {
    return self().call(w, SHARDARRAY_15(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <SHARDARRAY_16(SHARDARRAY_TYPE)>
  auto operator()(SHARDARRAY_16(SHARDARRAY_TAKEN), Where w = Where::here()) const try {
    return self().call(w, SHARDARRAY_16(SHARDARRAY_PASSED));
  } catch (Error& error) { rethrow_with(error, w); }
  template <class... A>
  requires(sizeof...(A) > 16) auto operator()(A&&... args) const {
    return self().call(Where(), std::forward<A>(args)...);
  }

 private:
  const Self& self() const { return static_cast<const Self&>(*this); }
};

/// The same for a function of the library, whose result is what it is called for:
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
