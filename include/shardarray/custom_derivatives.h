// custom_jvp, custom_vjp: functions with user-defined derivatives.
#pragma once
#include "shardarray/checkpoint.h"
#include "shardarray/grad.h"

namespace shardarray {

namespace detail {

template <class T> core::PlacedLeaves placed_leaves(const T& t) {
  core::PlacedLeaves r;
  each_leaf(t, [&](const Array& a, const Path& p) { r.push_back({a, p.text()}); });
  return r;
}
/// Arguments as passed to a rule: a single one as it is, several as a std::tuple.
template <class A> const A& rule_arguments(const std::tuple<A>& args) { return std::get<0>(args); }
template <class... A>
requires(sizeof...(A) != 1) const std::tuple<A...>& rule_arguments(const std::tuple<A...>& args) {
  return args;
}
template <class... A>
using rule_arguments_t = std::remove_cvref_t<decltype(rule_arguments(std::declval<std::tuple<A...>>()))>;

/// `like` with the next of `floating` in every floating slot, and absent arrays elsewhere.
template <class T> T floating_tree(const T& like, std::span<const Array> floating) {
  T r = like;
  std::size_t i = 0;
  each_leaf(r, [&](Array& a, const Path&) { a = is_inexact_array(a) ? floating[i++] : Array(); });
  return r;
}
template <class... A>
std::tuple<A...> floating_arguments(const std::tuple<A...>& like, std::span<const Array> floating) {
  std::tuple<A...> r = like;
  std::size_t i = 0;
  const auto set = [&](Array& a, const Path&) { a = is_inexact_array(a) ? floating[i++] : Array(); };
  std::apply([&](auto&... t) { (each_leaf(t, set), ...); }, r);
  return r;
}

/// Common to both: `custom(copies, result)` makes the derivative's functions for these arguments.
template <class F, class... A, class Custom>
auto custom_call(Where w, const F& f, const std::tuple<A...>& args, const Custom& custom) {
  using R = result_t<F, const A&...>;
  if (!core::may_be_derived()) {
    const UserSite user(w);
    return R(std::apply(f, args));
  }
  const core::Arrays given = present_leaves(args);
  const auto copies = std::make_shared<std::tuple<A...>>(args);
  const auto result = std::make_shared<std::optional<R>>();
  const auto body = [&](std::span<const Array> placeholders) {
    set_argument_leaves(*copies, placeholders);
    result->emplace(std::apply(f, std::as_const(*copies)));
    return slots(**result);
  };
  // The trees kept by the derivative's functions hold placeholders: no values, and no parts of the trace.
  const core::Arrays out = core::custom_call(body, given, custom(copies, result), w);
  R r = **result;
  set_slots(r, out);
  return r;
}

template <class Rule, class R, class In> struct JvpRule {
  static consteval bool ok() {
    constexpr bool fits = std::is_invocable_r_v<std::pair<R, R>, const Rule&, const In&, const In&>;
    static_assert(fits,
                  "custom_jvp: the derivative must take (arguments, tangents), each as one value or, for "
                  "several arguments, a std::tuple, and return std::pair(result, its tangent)");
    return fits;
  }
};
template <class F, class Rule, class Args> struct JvpRuleVerdict;
template <class F, class Rule, class... A> struct JvpRuleVerdict<F, Rule, std::tuple<A...>> {
  using R = result_t<F, const A&...>;
  using In = rule_arguments_t<A...>;
  static constexpr bool good = std::is_invocable_r_v<std::pair<R, R>, const Rule&, const In&, const In&>;
  using Complaint = JvpRule<Rule, R, In>;
};

/// The result of custom_jvp().
template <class F, class Rule> class CustomJvp : public PlacedCall<CustomJvp<F, Rule>> {
 public:
  CustomJvp(F f, Rule rule) : f_(std::move(f)), rule_(std::move(rule)) {}
  template <class... A>
  using Verdict = AllGood<TreeVerdict<A>..., LiftedVerdict<F, lifted_arguments<F, A...>>,
                          JvpRuleVerdict<F, Rule, lifted_arguments<F, A...>>>;
  template <class... A> using RefusedCall = refused_t<F, A...>;
  template <class... A> using Entry = LiftedEntry<F, A...>;
  template <class... A> auto call(Where w, const A&... args) const {
    if constexpr (Judged<Verdict<A...>>::ok()) return called(w, lifted_arguments<F, A...>(args...));
    else return refused<F, A...>();
  }

 private:
  template <class... A> auto called(Where w, const std::tuple<A...>& args) const {
    using R = result_t<F, const A&...>;
    return custom_call(w, f_, args, [&](const auto& copies, const auto&) {
      core::CustomFunctions c{"custom_jvp", id_};
      c.push = [rule = rule_, copies](std::span<const Array> primals, std::span<const Array> tangents) {
        std::tuple<A...> x = *copies;
        set_argument_leaves(x, primals);
        const std::tuple<A...> dx = floating_arguments(x, tangents);
        const std::pair<R, R> both = rule(rule_arguments(x), rule_arguments(dx));
        return placed_leaves(both.second);
      };
      return c;
    });
  }
  F f_;
  Rule rule_;
  std::shared_ptr<const void> id_ = std::make_shared<char>();
};

/// The cotangents of the present arguments.
template <class... A>
core::PlacedLeaves argument_cotangents(const std::tuple<A...>& args,
                                       const rule_arguments_t<A...>& cotangents) {
  const core::Arrays given = slots(cotangents);
  core::PlacedLeaves r;
  std::size_t k = 0;
  each_argument_leaf(args, [&](const Array& a, const Path& p) {
    if (a.has_value()) r.push_back({k < given.size() ? given[k] : Array(), p.text()});
    k++;
  });
  return r;
}
/// What the forward function of a function returning R may return.
template <class T, class R> inline constexpr bool is_result_with_residuals = false;
template <class R, class S> inline constexpr bool is_result_with_residuals<std::pair<R, S>, R> = true;

template <class Both, class R> struct VjpForward {
  static consteval bool ok() {
    constexpr bool fits = is_result_with_residuals<Both, R>;
    static_assert(fits,
                  "custom_vjp: the forward function must take the arguments of the function and return "
                  "std::pair(result, residuals)");
    return fits;
  }
};
template <class Backward, class Residuals, class R, class In> struct VjpBackward {
  static consteval bool ok() {
    constexpr bool fits = std::is_invocable_r_v<In, const Backward&, const Residuals&, const R&>;
    static_assert(
        fits,
        "custom_vjp: the backward function must take (residuals, cotangent of the result) and return "
        "the cotangents of the arguments: one value or, for several arguments, a std::tuple");
    return fits;
  }
};
template <class F, class Forward, class Args> struct VjpForwardVerdict;
template <class F, class Forward, class... A> struct VjpForwardVerdict<F, Forward, std::tuple<A...>> {
  using Both = result_t<Forward, const A&...>;
  using R = result_t<F, const A&...>;
  static constexpr bool good = is_result_with_residuals<Both, R>;
  using Complaint = VjpForward<Both, R>;
};
template <class F, class Forward, class Backward, class Args> struct VjpBackwardVerdict;
template <class F, class Forward, class Backward, class... A>
struct VjpBackwardVerdict<F, Forward, Backward, std::tuple<A...>> {
  using Residuals = typename result_t<Forward, const A&...>::second_type;
  using R = result_t<F, const A&...>;
  using In = rule_arguments_t<A...>;
  static constexpr bool good = std::is_invocable_r_v<In, const Backward&, const Residuals&, const R&>;
  using Complaint = VjpBackward<Backward, Residuals, R, In>;
};

/// The result of custom_vjp().
template <class F, class Forward, class Backward>
class CustomVjp : public PlacedCall<CustomVjp<F, Forward, Backward>> {
 public:
  CustomVjp(F f, Forward forward, Backward backward)
      : f_(std::move(f)), forward_(std::move(forward)), backward_(std::move(backward)) {}
  template <class... A>
  using Verdict = AllGood<TreeVerdict<A>..., LiftedVerdict<F, lifted_arguments<F, A...>>,
                          LiftedVerdict<Forward, lifted_arguments<F, A...>>,
                          VjpForwardVerdict<F, Forward, lifted_arguments<F, A...>>,
                          VjpBackwardVerdict<F, Forward, Backward, lifted_arguments<F, A...>>>;
  template <class... A> using RefusedCall = refused_t<F, A...>;
  template <class... A> using Entry = LiftedEntry<F, A...>;
  template <class... A> auto call(Where w, const A&... args) const {
    if constexpr (Judged<Verdict<A...>>::ok()) return derived(w, lifted_arguments<F, A...>(args...));
    else return refused<F, A...>();
  }

 private:
  template <class... A> auto derived(Where w, const std::tuple<A...>& args) const {
    using R = result_t<F, const A&...>;
    using Residuals = typename result_t<Forward, const A&...>::second_type;
    return custom_call(w, f_, args, [&](const auto& copies, const auto& result) {
      core::CustomFunctions c{"custom_vjp", id_};
      c.forward = [forward = forward_, backward = backward_, copies, result](std::span<const Array> primals) {
        std::tuple<A...> x = *copies;
        set_argument_leaves(x, primals);
        std::pair<R, Residuals> both = std::apply(forward, std::as_const(x));
        core::CustomForward r{placed_leaves(both.first), tree_leaves(both.second), {}};
        r.backward = [backward, copies, result, tree = std::move(both.second)](
                         std::span<const Array> residuals, std::span<const Array> cotangents) {
          const Residuals kept = shardarray::with_leaves(tree, residuals);
          return argument_cotangents(*copies, backward(kept, floating_tree(**result, cotangents)));
        };
        return r;
      };
      return c;
    });
  }
  F f_;
  Forward forward_;
  Backward backward_;
  std::shared_ptr<const void> id_ = std::make_shared<char>();
};

}  // namespace detail

/// `f` with the derivative `rule`: `rule(arguments, tangents)` returns std::pair(f(arguments), its tangent), linear in the tangents.
/// Arguments are one value, or a std::tuple of several, as in jvp; tangents are trees like them, absent for integers. Used in forward
/// mode and, transposed, in reverse mode:
///
///     const auto log1pexp = custom_jvp([](const Array& x) { return log(1 + exp(x)); },
///                                      [](const Array& x, const Array& dx) {
///                                        return std::pair(log(1 + exp(x)), (1 - 1 / (1 + exp(x))) * dx);
///                                      });
///
/// The rule may call the function itself. May be used in jit, vmap, scan and grad of grad. The rule is called along with the function if
/// a derivative may be requested, and perhaps later, on any thread: it must capture what it needs by value.
///
/// Throws, when called: TraceError if f or the rule prints or calls the host; ShapeError, DTypeError for a tangent that does not match
/// its result. When differentiated: Error with respect to an array that f captures (only arguments have a derivative), TraceError for the
/// second derivative of a function called by the rule if the rule captures arrays. Source: jax.custom_jvp.
template <class F, class Rule> [[nodiscard]] auto custom_jvp(F f, Rule rule) {
  return detail::CustomJvp<F, Rule>(std::move(f), std::move(rule));
}

/// `f` with a reverse-mode derivative: `forward(args...)` returns std::pair(f(args...), residuals), the residuals being any tree;
/// `backward(residuals, cotangent)` returns the cotangents of the arguments: one value, or a std::tuple of several, with absent arrays
/// (Array()) for zeros and for integers:
///
///     const auto clipped = custom_vjp([](const Array& x, const Array&) { return x; },
///                                     [](const Array& x, const Array& most) { return std::pair(x, most); },
///                                     [](const Array& most, const Array& g) {
///                                       return std::tuple(clip(g, -most, most), Array());
///                                     });
///
/// The value is always that of f, differentiated or not, in nested differentiation too: as in JAX if `forward` calls the function itself.
/// Functions are called like the rule of custom_jvp. Throws as custom_jvp, and Error in forward mode (jvp, jacfwd, hessian, linearize),
/// for which no rule is known. Source: jax.custom_vjp.
template <class F, class Forward, class Backward>
[[nodiscard]] auto custom_vjp(F f, Forward forward, Backward backward) {
  return detail::CustomVjp<F, Forward, Backward>(std::move(f), std::move(forward), std::move(backward));
}

}  // namespace shardarray
