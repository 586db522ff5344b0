// Derivatives: grad, value_and_grad, jvp, vjp. The function runs unchanged on renamed copies of its arguments, so it can read values;
// what it recorded, also in threads that it waits for, is differentiated afterwards.
#pragma once
#include <algorithm>

#include "shardarray/detail/call.h"
#include "shardarray/detail/differentiation.h"
#include "shardarray/detail/placed_call.h"
#include "shardarray/tree_filter.h"

namespace shardarray {

namespace detail {

/// N argument positions. N is part of the type, since the result's type depends on it.
template <std::size_t N> struct Argnums;
template <> struct Argnums<1> {
  Argnums(int a) : at{a} {}
  std::array<int, 1> at;
};
template <> struct Argnums<2> {
  Argnums(int a, int b) : at{a, b} {}
  std::array<int, 2> at;
};
template <> struct Argnums<3> {
  Argnums(int a, int b, int c) : at{a, b, c} {}
  std::array<int, 3> at;
};

}  // namespace detail

/// `{.argnums = {0, 2}, .has_aux = true}`. One position gives that argument's gradient, several a tuple. has_aux: the function returns
/// (loss, anything), as std::pair or std::tuple.
template <std::size_t N> struct GradOptions {
  detail::Argnums<N> argnums;  ///< one to three, from 0; negative positions do not count from the end
  bool has_aux = false;
};
template <> struct GradOptions<1> {
  detail::Argnums<1> argnums = 0;
  bool has_aux = false;
};
/// For positions given at compile time: `grad<1>(f, {.has_aux = true})`.
struct AuxOptions {
  bool has_aux = false;
};

namespace detail {

SHARDARRAY_API void check_argnums(std::span<const int> argnums, std::span<const void* const> tags,
                                  std::span<const void* const> wanted, const char* function);
SHARDARRAY_API void check_aux(bool has_aux, bool returns_aux, const char* function);
SHARDARRAY_API void check_tangent(const Array& primal, const Array& tangent, const Path& path,
                                  const char* function);

template <class A> using lifted_t = std::conditional_t<std::is_floating_point_v<A>, Array, A>;
template <class R> inline constexpr bool returns_aux = false;
template <class X> inline constexpr bool returns_aux<std::pair<Array, X>> = true;
template <class X> inline constexpr bool returns_aux<std::tuple<Array, X>> = true;

/// The arguments as passed on by lift().
template <class F, class... A> consteval bool are_lifted() {
  if constexpr ((std::is_floating_point_v<A> || ...)) return std::invocable<const F&, const lifted_t<A>&...>;
  else return false;  // without asking F
}
template <class F, class... A>
using lifted_arguments =
    std::conditional_t<are_lifted<F, A...>(), std::tuple<lifted_t<A>...>, std::tuple<A...>>;
/// Returns then(args), with floating-point numbers turned into arrays if the function takes arrays there: `grad(f)(2.0)`.
template <class F, class... A, class Then> auto lift(const std::tuple<A...>& args, const Then& then) {
  return then(lifted_arguments<F, A...>(args));
}

/// FunctionVerdict of lifted arguments.
template <class F, class Args> struct LiftedVerdict;
template <class F, class... A> struct LiftedVerdict<F, std::tuple<A...>> : FunctionVerdict<F, const A&...> {};
/// Entry of lifted arguments.
template <class F, class Args> struct LiftedEntryOf;
template <class F, class... A> struct LiftedEntryOf<F, std::tuple<A...>> {
  using type = Entry<F, const A&...>;
};
template <class F, class... A> using LiftedEntry = typename LiftedEntryOf<F, lifted_arguments<F, A...>>::type;

template <std::size_t arguments, std::size_t... Slot> struct GradPositions {
  static consteval bool ok() {
    constexpr bool fits = ((Slot < arguments) && ...);
    static_assert(fits, "grad: a position in argnums is beyond the last argument");
    return fits;
  }
};
template <std::size_t arguments, std::size_t... Slot> struct GradPositionsVerdict {
  static constexpr bool good = ((Slot < arguments) && ...);
  using Complaint = GradPositions<arguments, Slot...>;
};
template <class Args, std::size_t... Slot>
inline constexpr bool no_numbers = (!std::is_arithmetic_v<std::tuple_element_t<Slot, Args>> && ...);
template <class Args, std::size_t... Slot> struct GradArguments {
  static consteval bool ok() {
    constexpr bool fits = no_numbers<Args, Slot...>;
    static_assert(
        fits, "grad: the argument is a number that the function takes as a number; pass and take an Array");
    return fits;
  }
};
template <class Args, std::size_t... Slot> struct GradArgumentsVerdict {
  static constexpr bool good = no_numbers<Args, Slot...>;
  using Complaint = GradArguments<Args, Slot...>;
};
template <class R, bool aux_allowed>
inline constexpr bool is_loss = std::same_as<R, Array> || (aux_allowed && returns_aux<R>);
template <class R, bool aux_allowed> struct Loss {
  static consteval bool ok() {
    constexpr bool fits = is_loss<R, aux_allowed>;
    static_assert(
        fits,
        "grad: the function must return one Array (a scalar loss); for (loss, aux) say {.has_aux = true}");
    return fits;
  }
};
template <class F, class Args, bool aux_allowed> struct LossVerdict;
template <class F, class... A, bool aux_allowed> struct LossVerdict<F, std::tuple<A...>, aux_allowed> {
  using R = result_t<F, const A&...>;
  static constexpr bool good = is_loss<R, aux_allowed>;
  using Complaint = Loss<R, aux_allowed>;
};

/// The arguments of a function, renamed, while it is differentiated with respect to them.
template <class... A> class Variables {
 public:
  /// Makes variables only of the arguments at `chosen`; `function` is the public function that does so.
  Variables(std::tuple<A...> args, std::span<const int> chosen, const char* function)
      : args_(std::move(args)), open_(primals(args_, chosen), function) {
    std::size_t i = 0;
    auto rename = [&](Array& a, const Path&) {
      const Array& v = open_.variables()[i++];
      if (v.has_value()) a = v;
    };
    std::apply([&](auto&... t) { (each_leaf(t, rename), ...); }, args_);
  }
  const std::tuple<A...>& args() const { return args_; }
  const core::Differentiation& open() const { return open_; }
  /// Trees like the arguments, with these arrays in all slots.
  std::tuple<A...> trees(std::span<const Array> arrays) const {
    std::tuple<A...> r = args_;
    std::size_t i = 0;
    auto set = [&](Array& a, const Path&) { a = arrays[i++]; };
    std::apply([&](auto&... t) { (each_leaf(t, set), ...); }, r);
    return r;
  }

 private:
  static core::Arrays primals(const std::tuple<A...>& args, std::span<const int> chosen) {
    core::Arrays r;
    int i = 0;
    auto collect = [&](const auto& t) {
      const bool wanted = std::find(chosen.begin(), chosen.end(), i++) != chosen.end();
      each_leaf(
          t, [&](const Array& a, const Path&) { r.push_back(wanted && is_inexact_array(a) ? a : Array()); });
    };
    std::apply([&](const auto&... t) { (collect(t), ...); }, args);
    return r;
  }
  std::tuple<A...> args_;
  core::Differentiation open_;
};

/// Returns (the result of f, the gradients of the arguments at `argnums`, whose types are those at Slot).
template <std::size_t... Slot, class F, class... A>
auto differentiate(std::index_sequence<Slot...>, std::span<const int> argnums, const char* function,
                   const F& f, std::tuple<A...> args) {
  using Args = std::tuple<A...>;
  const void* const tags[] = {&type_tag<A>...};
  const void* const wanted[] = {&type_tag<std::tuple_element_t<Slot, Args>>...};
  check_argnums(argnums, tags, wanted, function);
  const Variables<A...> variables(std::move(args), argnums, function);
  auto value = std::apply(f, variables.args());
  core::Arrays gradients;
  if constexpr (std::same_as<decltype(value), Array>)
    gradients = core::gradient(variables.open(), value, function);
  else gradients = core::gradient(variables.open(), std::get<0>(value), function);
  const Args trees = variables.trees(gradients);
  const auto at =
      std::apply([](const auto&... t) { return std::array<const void*, sizeof...(A)>{&t...}; }, trees);
  auto grads = [&]<std::size_t... K>(std::index_sequence<K...>) {  // check_argnums compared the types
    return std::tuple<std::tuple_element_t<Slot, Args>...>{
        *static_cast<const std::tuple_element_t<Slot, Args>*>(at[static_cast<std::size_t>(argnums[K])])...};
  }
  (std::index_sequence_for<std::tuple_element_t<Slot, Args>...>{});
  return std::pair(std::move(value), std::move(grads));
}

/// The result type of a rejected call of a Gradient, as far as it is known.
template <bool WithValue, bool AuxAllowed, class Args, std::size_t... Slot> consteval auto gradient_type() {
  if constexpr (AuxAllowed || !((Slot < std::tuple_size_v<Args>)&&...)) return std::type_identity<Failed>();
  else {
    using G = std::tuple_element_t<0, std::tuple<lifted_t<std::tuple_element_t<Slot, Args>>...>>;
    return std::type_identity<std::conditional_t<WithValue, std::pair<Failed, G>, G>>();
  }
}
template <bool WithValue, bool AuxAllowed, class Args, std::size_t... Slot>
using refused_gradient = typename decltype(gradient_type<WithValue, AuxAllowed, Args, Slot...>())::type;

/// The result of grad() and value_and_grad(). Slot: the static positions, or 0, 1, ... if options give them.
template <class F, bool WithValue, bool AuxAllowed, std::size_t... Slot>
class Gradient : public PlacedCall<Gradient<F, WithValue, AuxAllowed, Slot...>> {
 public:
  Gradient(F f, std::array<int, sizeof...(Slot)> argnums, bool has_aux)
      : f_(std::move(f)), argnums_(argnums), has_aux_(has_aux) {}
  template <class... A>
  using Verdict = AllGood<TreeVerdict<A>..., GradPositionsVerdict<sizeof...(A), Slot...>,
                          GradArgumentsVerdict<lifted_arguments<F, A...>, Slot...>,
                          LiftedVerdict<F, lifted_arguments<F, A...>>,
                          LossVerdict<F, lifted_arguments<F, A...>, AuxAllowed>>;
  template <class... A>
  using RefusedCall = refused_gradient<WithValue, AuxAllowed, std::tuple<A...>, Slot...>;
  template <class... A> using Entry = LiftedEntry<F, A...>;
  template <class... A> auto call(Where w, const A&... args) const {
    if constexpr (Judged<Verdict<A...>>::ok()) {
      const UserSite user(w);
      return derived(lifted_arguments<F, A...>(args...));
    } else return refused<Gradient, A...>();
  }

 private:
  template <class T> static T one_or_all(std::tuple<T> g) { return std::get<0>(std::move(g)); }
  template <class... T> static std::tuple<T...> one_or_all(std::tuple<T...> g) { return g; }
  static constexpr const char* name = WithValue ? "value_and_grad" : "grad";
  template <class... A> auto derived(std::tuple<A...> args) const {
    constexpr bool aux = returns_aux<result_t<F, const A&...>>;
    check_aux(has_aux_, aux, name);
    auto [value, gradients] =
        differentiate(std::index_sequence<Slot...>{}, argnums_, name, f_, std::move(args));
    auto grads = one_or_all(std::move(gradients));
    if constexpr (WithValue) return std::pair(std::move(value), std::move(grads));
    else if constexpr (aux) return std::pair(std::move(grads), std::get<1>(std::move(value)));
    else return grads;
  }
  F f_;
  std::array<int, sizeof...(Slot)> argnums_;
  bool has_aux_;
};

}  // namespace detail

/// The gradient of a scalar loss with respect to every floating-point array of the first argument, as a tree like that argument: each
/// gradient has its array's shape and dtype, zero if the loss does not depend on it; all other leaves (integers, bool) are absent. A
/// floating-point number is treated as an Array: `grad(f)(2.0)`. Throws ShapeError unless the loss is a scalar, DTypeError unless it is
/// floating, Error for an operation without a derivative (pmax, pmin; by name and line).
template <class F> [[nodiscard]] auto grad(F f) {
  return detail::Gradient<F, false, false, 0>(std::move(f), {0}, false);
}
/// Returns (loss, gradient). With has_aux, ((loss, aux), gradient); grad() then returns (gradient, aux). Throws as grad.
template <class F> [[nodiscard]] auto value_and_grad(F f) {
  return detail::Gradient<F, true, false, 0>(std::move(f), {0}, false);
}

/// Differentiates with respect to other arguments. The result types are those of the first arguments: if argument types differ, give the
/// positions at compile time: `grad<1>(f)`, `grad<0, 2>(f, {.has_aux = true})`. Throws as grad, and TreeError for a position beyond the
/// arguments or repeated, an argument of another type, and if has_aux does not match what the function returns.
template <class F> [[nodiscard]] auto grad(F f, GradOptions<1> o) {
  return detail::Gradient<F, false, true, 0>(std::move(f), o.argnums.at, o.has_aux);
}
template <class F> [[nodiscard]] auto grad(F f, GradOptions<2> o) {
  return detail::Gradient<F, false, true, 0, 1>(std::move(f), o.argnums.at, o.has_aux);
}
template <class F> [[nodiscard]] auto grad(F f, GradOptions<3> o) {
  return detail::Gradient<F, false, true, 0, 1, 2>(std::move(f), o.argnums.at, o.has_aux);
}
template <class F> [[nodiscard]] auto value_and_grad(F f, GradOptions<1> o) {
  return detail::Gradient<F, true, true, 0>(std::move(f), o.argnums.at, o.has_aux);
}
template <class F> [[nodiscard]] auto value_and_grad(F f, GradOptions<2> o) {
  return detail::Gradient<F, true, true, 0, 1>(std::move(f), o.argnums.at, o.has_aux);
}
template <class F> [[nodiscard]] auto value_and_grad(F f, GradOptions<3> o) {
  return detail::Gradient<F, true, true, 0, 1, 2>(std::move(f), o.argnums.at, o.has_aux);
}
template <std::size_t First, std::size_t... More, class F> [[nodiscard]] auto grad(F f, AuxOptions o = {}) {
  return detail::Gradient<F, false, true, First, More...>(std::move(f), {int{First}, int{More}...},
                                                          o.has_aux);
}
template <std::size_t First, std::size_t... More, class F>
[[nodiscard]] auto value_and_grad(F f, AuxOptions o = {}) {
  return detail::Gradient<F, true, true, First, More...>(std::move(f), {int{First}, int{More}...}, o.has_aux);
}

namespace detail {

template <class T> inline constexpr bool is_argument_list = false;
template <class... T> inline constexpr bool is_argument_list<std::tuple<T...>> = true;
/// A tuple stands for several arguments, anything else for one.
template <class T> auto argument_list(const T& t) {
  if constexpr (is_argument_list<T>) return t;
  else return std::tuple<T>{t};
}
template <class... A> constexpr std::array<int, sizeof...(A)> every_position(const std::tuple<A...>&) {
  std::array<int, sizeof...(A)> r{};
  for (std::size_t k = 0; k < r.size(); k++) r[k] = static_cast<int>(k);
  return r;
}

template <class F, class... A>
auto push_tangents(const F& f, std::tuple<A...> args, const std::tuple<A...>& tangents) {
  core::Arrays given;
  each_argument_leaf(tangents, [&](const Array& a, const Path&) { given.push_back(a); });
  std::size_t i = 0;
  each_argument_leaf(args, [&](const Array& a, const Path& p) {
    check_tangent(a, i < given.size() ? given[i] : Array(), p, "jvp");
    i++;
  });
  const auto positions = every_position(args);
  const Variables<A...> variables(std::move(args), positions, "jvp");
  auto value = std::apply(f, variables.args());
  auto tangent = value;
  set_slots(tangent, variables.open().push(slots(value), given));
  return std::pair(std::move(value), std::move(tangent));
}

template <class P, class T> struct SameTangents {
  static consteval bool ok() {
    constexpr bool same = std::is_same_v<P, T>;
    static_assert(same, "jvp, hvp: the tangents must have the type of the primals");
    return same;
  }
};
template <class P, class T> struct TangentsVerdict {
  static constexpr bool good = std::is_same_v<P, T>;
  using Complaint = SameTangents<P, T>;
};
template <class F, class List> struct LiftedList;
template <class F, class... A> struct LiftedList<F, std::tuple<A...>> {
  using type = lifted_arguments<F, A...>;
};
/// The arguments that `primals` stands for, as passed on by lift().
template <class F, class P>
using lifted_list = typename LiftedList<F, decltype(argument_list(std::declval<const P&>()))>::type;
/// Whether both trees have one type, which F can be called with.
template <class F, class P, class T, class... More>
using JvpCheck = Judged<TreeVerdict<P>, TreeVerdict<T>, TangentsVerdict<P, T>,
                        LiftedVerdict<F, lifted_list<F, P>>, More...>;

/// The linear map from a cotangent of the result to those of the arguments. A plain value: it may be copied, called and destroyed on any
/// thread, and nothing else depends on its lifetime.
template <class R, class... A> class Pullback {
 public:
  template <class F> Pullback(const F& f, std::tuple<A...> args) {
    const auto positions = every_position(args);
    variables_ = std::make_shared<const Variables<A...>>(std::move(args), positions, "vjp");
    value_ = std::make_shared<const R>(std::apply(f, variables_->args()));
    variables_->open().linearize(slots(*value_));
  }
  /// What the function returned.
  const R& value() const { return *value_; }
  /// One tree per argument. Absent cotangents are zero. Throws ShapeError or DTypeError for a cotangent without the shape or dtype of its
  /// result, TreeError for another structure.
  [[nodiscard]] std::tuple<A...> operator()(const R& cotangent, Where w = Where::here()) const {
    const UserSite user(w);
    Structure s = structure(*value_, false);
    const core::Arrays given = slots_like(s, cotangent, 1, "vjp");
    std::size_t i = 0;
    each_leaf(*value_, [&](const Array& a, const Path& p) { check_tangent(a, given[i++], p, "vjp"); });
    return variables_->trees(variables_->open().pull(given));
  }

 private:
  std::shared_ptr<const Variables<A...>> variables_;
  std::shared_ptr<const R> value_;
};

/// Implements vjp().
struct vjp_fn {
  template <class F, class... A> static auto call(Where w, const F& f, const A&... primals) {
    const UserSite user(w);
    if constexpr (Judged<TreeVerdict<A>..., LiftedVerdict<F, lifted_arguments<F, A...>>>::ok())
      return lift<F>(std::tuple<A...>{primals...}, [&]<class... B>(std::tuple<B...> args) {
        Pullback<result_t<F, const B&...>, B...> pullback(f, std::move(args));
        auto value = pullback.value();
        return std::pair(std::move(value), std::move(pullback));
      });
    else return Failed();
  }
};

}  // namespace detail

/// Returns (f(primals...), the derivative in the direction of the tangents). `primals` and `tangents` are one argument each, or
/// std::tuples of several. A tangent has the shape and dtype of its primal; an absent one is zero, and integers have absent ones. Throws
/// ShapeError or DTypeError, with its path, for a tangent that does not fit.
template <class F, class P, class T>
[[nodiscard]] auto jvp(const F& f, const P& primals, const T& tangents, Where w = Where::here()) {
  const detail::UserSite user(w);
  if constexpr (detail::JvpCheck<F, P, T>::ok())
    return detail::lift<F>(detail::argument_list(primals), [&](auto args) {
      using Args = decltype(args);
      return detail::push_tangents(f, std::move(args), Args(detail::argument_list(tangents)));
    });
  else return detail::Failed();
}

/// `vjp(f, primals...)` returns (f(primals...), pullback). `pullback(cotangent)` returns a std::tuple with one tree per argument, absent
/// where an array is not floating. f runs once, however often the pullback is called.
inline constexpr detail::PlacedFunction<detail::vjp_fn> vjp{};

[[nodiscard]] SHARDARRAY_API Array stop_gradient(const Array& x, Where w);  // math.h
/// The tree with every array treated as a constant by derivatives.
template <Tree T>
requires(!std::convertible_to<T, Array>) [[nodiscard]] T
    stop_gradient(const T& tree, Where w = Where::here()) {
  return tree_map([w](const Array& a) { return stop_gradient(a, w); }, tree);
}

}  // namespace shardarray
