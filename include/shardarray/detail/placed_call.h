// The line of a call that takes any number of arguments, behind which no default argument can stand.
#pragma once
#include <utility>

#include "shardarray/error.h"

namespace shardarray::detail {

/// The call operator of what jit, grad, vmap and their kin return: `call(line, args...)` of Self. An error that has no place yet
/// gets that of the call; nothing is done for a call that throws none. Calls of more than eight arguments have no line.
template <class Self> class PlacedCall {
 public:
  auto operator()(Where w = Where::here()) const try { return self().call(w); } catch (Error& error) {
    place(error, w);
  }
  template <class A> auto operator()(A&& a, Where w = Where::here()) const try {
    return self().call(w, std::forward<A>(a));
  } catch (Error& error) { place(error, w); }
  template <class A, class B> auto operator()(A&& a, B&& b, Where w = Where::here()) const try {
    return self().call(w, std::forward<A>(a), std::forward<B>(b));
  } catch (Error& error) { place(error, w); }
  template <class A, class B, class C>
  auto operator()(A&& a, B&& b, C&& c, Where w = Where::here()) const try {
    return self().call(w, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c));
  } catch (Error& error) { place(error, w); }
  template <class A, class B, class C, class D>
  auto operator()(A&& a, B&& b, C&& c, D&& d, Where w = Where::here()) const try {
    return self().call(w, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c), std::forward<D>(d));
  } catch (Error& error) { place(error, w); }
  template <class A, class B, class C, class D, class E>
  auto operator()(A&& a, B&& b, C&& c, D&& d, E&& e, Where w = Where::here()) const try {
    return self().call(w, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c), std::forward<D>(d),
                       std::forward<E>(e));
  } catch (Error& error) { place(error, w); }
  template <class A, class B, class C, class D, class E, class F>
  auto operator()(A&& a, B&& b, C&& c, D&& d, E&& e, F&& f, Where w = Where::here()) const try {
    return self().call(w, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c), std::forward<D>(d),
                       std::forward<E>(e), std::forward<F>(f));
  } catch (Error& error) { place(error, w); }
  template <class A, class B, class C, class D, class E, class F, class G>
  auto operator()(A&& a, B&& b, C&& c, D&& d, E&& e, F&& f, G&& g, Where w = Where::here()) const try {
    return self().call(w, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c), std::forward<D>(d),
                       std::forward<E>(e), std::forward<F>(f), std::forward<G>(g));
  } catch (Error& error) { place(error, w); }
  template <class A, class B, class C, class D, class E, class F, class G, class H>
  auto operator()(A&& a, B&& b, C&& c, D&& d, E&& e, F&& f, G&& g, H&& h, Where w = Where::here()) const try {
    return self().call(w, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c), std::forward<D>(d),
                       std::forward<E>(e), std::forward<F>(f), std::forward<G>(g), std::forward<H>(h));
  } catch (Error& error) { place(error, w); }
  template <class... A>
  requires(sizeof...(A) > 8) auto operator()(A&&... args) const {
    return self().call(Where(), std::forward<A>(args)...);
  }

 private:
  const Self& self() const { return static_cast<const Self&>(*this); }
  [[noreturn]] static void place(Error& e, Where w) {
    e.add_place(w);
    throw;
  }
};

/// The same for a function of the library: `constexpr PlacedFunction<eval_fn> eval{}` is called as eval_fn::call(line, args...).
template <class F> class PlacedFunction : public PlacedCall<PlacedFunction<F>>, public F {};

}  // namespace shardarray::detail
