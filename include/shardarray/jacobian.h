// Derivatives of non-scalar functions: jacfwd, jacrev, hessian, hvp, linearize.
#pragma once
#include "shardarray/grad.h"

namespace shardarray {

namespace detail {

/// The derivatives of a result `out` with respect to an argument of type In, as a tree like the argument; next() returns those of the
/// next array of `out`.
template <class In, class Out, class Next> auto jacobian_tree(const Out& out, const Next& next) {
  if constexpr (std::same_as<Out, Array>) {
    return next();
  } else if constexpr (std::same_as<In, Array>) {
    Out r = out;
    each_leaf(r, [&](Array& a, const Path&) { a = next(); });
    return r;
  } else if constexpr (is_tuple<Out>) {
    return std::apply(
        [&]<class... T>(const T&... part) {
          if constexpr (is_argument_list<Out>)
            return std::tuple<decltype(jacobian_tree<In>(part, next))...>{jacobian_tree<In>(part, next)...};
          else return std::pair<decltype(jacobian_tree<In>(part, next))...>{jacobian_tree<In>(part, next)...};
        },
        out);
  } else if constexpr (is_sequence<Out>) {
    std::vector<decltype(jacobian_tree<In>(*out.begin(), next))> r;
    for (const auto& part : out) r.push_back(jacobian_tree<In>(part, next));
    return r;
  } else if constexpr (is_map<Out>) {
    std::map<std::string, decltype(jacobian_tree<In>(out.begin()->second, next))> r;
    for (const auto& [key, part] : out) r.emplace(key, jacobian_tree<In>(part, next));
    return r;
  } else {
    std::vector<In> r;
    each_leaf(out, [&](const Array& a, const Path&) {
      In of_leaf = next();
      if (a.has_value()) r.push_back(std::move(of_leaf));
    });
    return r;
  }
}

template <bool good> struct JacobianPosition {
  static consteval bool ok() {
    constexpr bool fits = good;
    static_assert(fits, "jacfwd, jacrev, hessian: the position is beyond the last argument");
    return fits;
  }
};
template <std::size_t arguments, std::size_t At> struct JacobianPositionVerdict {
  static constexpr bool good = At < arguments;
  using Complaint = JacobianPosition<good>;
};
template <bool good> struct JacobianArgument {
  static consteval bool ok() {
    constexpr bool fits = good;
    static_assert(
        fits,
        "jacfwd, jacrev, hessian: the argument is a number that the function takes as a number; pass and "
        "take an Array");
    return fits;
  }
};
template <class Args, std::size_t At> struct JacobianArgumentVerdict {
  static constexpr bool good = no_numbers<Args, At>;
  using Complaint = JacobianArgument<good>;
};

template <class F, std::size_t At, class... A>
using JacobianVerdict = AllGood<TreeVerdict<A>..., JacobianPositionVerdict<sizeof...(A), At>,
                                JacobianArgumentVerdict<lifted_arguments<F, A...>, At>,
                                LiftedVerdict<F, lifted_arguments<F, A...>>>;

/// The result of jacfwd() and jacrev().
template <class F, core::JacobianBy By, std::size_t At>
class Jacobian : public PlacedCall<Jacobian<F, By, At>> {
 public:
  explicit Jacobian(F f) : f_(std::move(f)) {}
  template <class... A> using Verdict = JacobianVerdict<F, At, A...>;
  template <class...> using RefusedCall = Failed;
  template <class... A> using Entry = LiftedEntry<F, A...>;
  template <class... A> auto call(Where w, const A&... args) const {
    if constexpr (Judged<Verdict<A...>>::ok()) {
      const UserSite user(w);
      return derived(w, lifted_arguments<F, A...>(args...));
    } else return Failed();
  }

 private:
  template <class... A> auto derived(Where w, std::tuple<A...> args) const {
    using In = std::tuple_element_t<At, std::tuple<A...>>;
    const int chosen[] = {static_cast<int>(At)};
    constexpr const char* name = By == core::JacobianBy::columns ? "jacfwd"
                                 : By == core::JacobianBy::rows  ? "jacrev"
                                                                 : "hessian";
    const Variables<A...> variables(std::move(args), chosen, name);
    const auto value = std::apply(f_, variables.args());
    const core::Arrays all = core::jacobian(variables.open(), slots(value), By, name, w);
    const std::size_t count = variables.open().variables().size();
    std::size_t first = 0;
    return jacobian_tree<In>(value, [&] {
      first += count;
      return std::get<At>(variables.trees(std::span(all).subspan(first - count, count)));
    });
  }
  F f_;
};

/// The result of hessian().
template <class F, std::size_t At> class SecondDerivatives : public PlacedCall<SecondDerivatives<F, At>> {
 public:
  explicit SecondDerivatives(F f) : of_(Rows(std::move(f))) {}
  template <class... A> using Verdict = JacobianVerdict<F, At, A...>;
  template <class...> using RefusedCall = Failed;
  template <class... A> using Entry = LiftedEntry<F, A...>;
  template <class... A> auto call(Where w, const A&... args) const {
    if constexpr (Judged<Verdict<A...>>::ok()) return of_.call(w, args...);
    else return Failed();
  }

 private:
  using Rows = Jacobian<F, core::JacobianBy::rows_of_hessian, At>;
  Jacobian<Rows, core::JacobianBy::columns, At> of_;
};

/// The linear map from tangents of the arguments to those of the result. A plain value: may be copied, called and destroyed on any
/// thread.
template <class R, class... A> class LinearFunction {
 public:
  template <class F> LinearFunction(const F& f, std::tuple<A...> args) {
    const auto positions = every_position(args);
    variables_ = std::make_shared<const Variables<A...>>(std::move(args), positions, "linearize");
    value_ = std::make_shared<const R>(std::apply(f, variables_->args()));
    variables_->open().linearize(slots(*value_));
  }
  /// What the function returned.
  const R& value() const { return *value_; }
  /// One tangent per argument, of its shape and dtype; absent ones are zero, and integers have absent ones. Throws ShapeError or
  /// DTypeError, with its path, for a tangent that does not fit, TreeError for another structure.
  [[nodiscard]] R operator()(const A&... tangents, Where w = Where::here()) const {
    const UserSite user(w);
    core::Arrays given;
    std::size_t k = 1;
    std::apply(
        [&](const auto&... primal) { (append(given, slots_like_argument(primal, tangents, k++)), ...); },
        variables_->args());
    std::size_t i = 0;
    each_argument_leaf(variables_->args(), [&](const Array& a, const Path& p) {
      check_tangent(a, given[i], p, "linearize");
      i++;
    });
    R r = *value_;
    set_slots(r, variables_->open().apply(given));
    return r;
  }

 private:
  template <class T>
  static core::Arrays slots_like_argument(const T& primal, const T& tangent, std::size_t k) {
    Structure s = structure(primal, false);
    return slots_like(s, tangent, k, "linearize");
  }
  static void append(core::Arrays& all, core::Arrays more) {
    all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  std::shared_ptr<const Variables<A...>> variables_;
  std::shared_ptr<const R> value_;
};

/// Implements linearize().
struct linearize_fn {
  template <class F, class... A> static auto call(Where w, const F& f, const A&... primals) {
    const UserSite user(w);
    if constexpr (Judged<TreeVerdict<A>..., LiftedVerdict<F, lifted_arguments<F, A...>>>::ok())
      return lift<F>(std::tuple<A...>{primals...}, [&]<class... B>(std::tuple<B...> args) {
        LinearFunction<result_t<F, const B&...>, B...> linear(f, std::move(args));
        auto value = linear.value();
        return std::pair(std::move(value), std::move(linear));
      });
    else return Failed();
  }
};

template <class Args, std::size_t... I>
GradArgumentsVerdict<Args, I...> all_arguments(std::index_sequence<I...>);
template <class Args>
using AllArgumentsVerdict =
    decltype(all_arguments<Args>(std::make_index_sequence<std::tuple_size_v<Args>>()));
template <class F, class P, class T>
using HvpCheck =
    JvpCheck<F, P, T, AllArgumentsVerdict<lifted_list<F, P>>, LossVerdict<F, lifted_list<F, P>, false>>;

}  // namespace detail

/// `jacfwd(f)(x, ...)`: the Jacobian of the result with respect to the first argument, column by column (forward mode): for few inputs.
/// `jacfwd<1>(f)`: with respect to the second argument.
///
/// A result [..] with an argument [...] gives shape [.., ...]. If the argument is a tree, every array of the result has a tree like it:
/// an Array becomes that tree; pairs, tuples, vectors and maps hold trees; any other struct becomes a std::vector with one tree per
/// array, in the order of tree_leaves(). If the argument is one Array, the result keeps its type. Absent for arrays that are not
/// floating. f runs once. A floating-point number is treated as an Array.
///
/// Throws DTypeError if the function returns an array that is not floating, or a real one for complex arguments, and what derivatives
/// throw (grad.h). Source: jax.jacfwd.
template <std::size_t At = 0, class F> [[nodiscard]] auto jacfwd(F f) {
  return detail::Jacobian<F, core::JacobianBy::columns, At>(std::move(f));
}
/// The same, row by row (reverse mode): for few outputs. Rows have the argument's dtype, columns of jacfwd() the result's. For complex
/// arguments, rows are those of grad(); complex results of real arguments are rejected. Source: jax.jacrev.
template <std::size_t At = 0, class F> [[nodiscard]] auto jacrev(F f) {
  return detail::Jacobian<F, core::JacobianBy::rows, At>(std::move(f));
}
/// `hessian(f)(x, ...)`: second derivatives with respect to the first argument, jacfwd(jacrev(f)): for a result [..] and an argument
/// [...] of shape [.., ..., ...]. Trees, other arguments and errors as in jacfwd. Source: jax.hessian.
template <std::size_t At = 0, class F> [[nodiscard]] auto hessian(F f) {
  return detail::SecondDerivatives<F, At>(std::move(f));
}

/// The product of the Hessian of a scalar loss at `x` with `v`, without forming the Hessian: the derivative of the gradient in direction
/// v. `x`, `v` and the result are one argument each, or std::tuples of several. A floating-point number is treated as an Array. Throws as
/// grad and jvp.
template <class F, class P, class T = P>
[[nodiscard]] auto hvp(const F& f, const P& x, const T& v, Where w = Where::here()) {
  if constexpr (!detail::HvpCheck<F, P, T>::ok()) return detail::Failed();
  else if constexpr (detail::is_argument_list<P>) return [&]<std::size_t... I>(std::index_sequence<I...>) {
      const auto gradient = [&](const auto&... args) {
        using All = std::tuple<std::remove_cvref_t<decltype(args)>...>;
        if constexpr (sizeof...(I) == 1) return All{grad(f).call(w, args...)};
        else return All(grad<I...>(f).call(w, args...));
      };
      return jvp(gradient, x, v, w).second;
    }
  (std::make_index_sequence<std::tuple_size_v<P>>{});
  else return jvp([&](const auto& arg) { return grad(f).call(w, arg); }, x, v, w).second; }

/// `linearize(f, primals...)` returns (f(primals...), its linearisation), a function that maps one tangent per argument to those of the
/// result. f runs once, however often that is called. Throws as jvp. Source: jax.linearize.
inline constexpr detail::PlacedFunction<detail::linearize_fn> linearize{};

}  // namespace shardarray
