// The line of a call that takes any number of arguments, behind which no default argument can stand.
#pragma once
#include <utility>

#include "shardarray/error.h"

namespace shardarray::detail {

/// The call operator of what jit, grad, vmap and their kin return: `call(line, args...)` of Self. An error that has no place yet
/// gets that of the call; nothing is done for a call that throws none. Calls of more than eight arguments have no line.
template <class Self> class PlacedCall {
 public:
  auto operator()(Where w = Where::here()) const { return at(w); }
  template <class A> auto operator()(A&& a, Where w = Where::here()) const {
    return at(w, std::forward<A>(a));
  }
  template <class A, class B> auto operator()(A&& a, B&& b, Where w = Where::here()) const {
    return at(w, std::forward<A>(a), std::forward<B>(b));
  }
  template <class A, class B, class C> auto operator()(A&& a, B&& b, C&& c, Where w = Where::here()) const {
    return at(w, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c));
  }
  template <class A, class B, class C, class D>
  auto operator()(A&& a, B&& b, C&& c, D&& d, Where w = Where::here()) const {
    return at(w, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c), std::forward<D>(d));
  }
  template <class A, class B, class C, class D, class E>
  auto operator()(A&& a, B&& b, C&& c, D&& d, E&& e, Where w = Where::here()) const {
    return at(w, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c), std::forward<D>(d),
              std::forward<E>(e));
  }
  template <class A, class B, class C, class D, class E, class F>
  auto operator()(A&& a, B&& b, C&& c, D&& d, E&& e, F&& f, Where w = Where::here()) const {
    return at(w, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c), std::forward<D>(d),
              std::forward<E>(e), std::forward<F>(f));
  }
  template <class A, class B, class C, class D, class E, class F, class G>
  auto operator()(A&& a, B&& b, C&& c, D&& d, E&& e, F&& f, G&& g, Where w = Where::here()) const {
    return at(w, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c), std::forward<D>(d),
              std::forward<E>(e), std::forward<F>(f), std::forward<G>(g));
  }
  template <class A, class B, class C, class D, class E, class F, class G, class H>
  auto operator()(A&& a, B&& b, C&& c, D&& d, E&& e, F&& f, G&& g, H&& h, Where w = Where::here()) const {
    return at(w, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c), std::forward<D>(d),
              std::forward<E>(e), std::forward<F>(f), std::forward<G>(g), std::forward<H>(h));
  }
  template <class... A>
  requires(sizeof...(A) > 8) auto operator()(A&&... args) const { return at({}, std::forward<A>(args)...); }

 private:
  template <class... A> auto at(Where w, A&&... args) const {
    try {
      return static_cast<const Self&>(*this).call(w, std::forward<A>(args)...);
    } catch (Error& e) {
      e.add_place(w);
      throw;
    }
  }
};

/// The same for a function of the library: `constexpr PlacedFunction<eval_fn> eval{}` is called as eval_fn::call(line, args...).
template <class F> class PlacedFunction : public PlacedCall<PlacedFunction<F>> {
 public:
  template <class... A> auto call(Where w, A&&... args) const { return F::call(w, std::forward<A>(args)...); }
};

}  // namespace shardarray::detail
