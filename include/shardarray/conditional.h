// cond, switch_, while_loop: control flow that depends on values; every branch and step is compiled once.
#pragma once
#include <functional>

// In this order: compilers print the include path of a header with an error.
#include "shardarray/array.h"
#include "shardarray/tree.h"

#include "shardarray/control_flow.h"
#include "shardarray/detail/placed_call.h"

namespace shardarray {

namespace core {

/// The results, in all slots, of the branch numbered `index`; with `predicate`, a scalar of which true or non-zero means 1. Each branch
/// is called once, on placeholders of the present operands.
SHARDARRAY_API Arrays choose(const Array& index, bool predicate, std::span<const MapBody> branches,
                             std::span<const Array> operands, const char* function, Where w);
/// Carries as in scan(): returns the last ones, in all slots. The condition returns a scalar.
SHARDARRAY_API Arrays while_loop(MapBody condition, MapBody body, std::span<const ScanLeaf> init, Where w);

}  // namespace core

namespace detail {

/// For branches that return R.
template <class R, class... A>
R choose(Where w, const char* function, const Array& index, bool predicate,
         const std::vector<FunctionRef<R(const std::tuple<A...>&)>>& branches, const std::tuple<A...>& args) {
  std::tuple<A...> copies = args;
  core::Arrays operands;
  each_argument_leaf(args, [&](const Array& a, const Path&) {
    if (a.has_value()) operands.push_back(a);
  });
  std::optional<R> result;
  std::optional<Structure> first;
  std::vector<std::function<core::Arrays(std::span<const Array>)>> bodies;
  for (std::size_t k = 0; k < branches.size(); k++)
    bodies.push_back([&, k](std::span<const Array> placeholders) {
      set_argument_leaves(copies, placeholders);
      R r = branches[k](std::as_const(copies));
      if (!first) first.emplace(structure(r, true));
      core::Arrays places = slots_like(*first, r, k, function);
      if (!result) result.emplace(std::move(r));
      return places;
    });
  const std::vector<core::MapBody> bodies_of(bodies.begin(), bodies.end());
  const core::Arrays places =
      core::choose(index, predicate, bodies_of, operands, function, w);  // also sets `result`
  set_slots(*result, places);
  return std::move(*result);
}

/// Implements cond().
struct cond_fn {
  template <class T, class F, class... A>
  static auto call(Where w, const Array& predicate, const T& if_true, const F& if_false,
                   const A&... operands) {
    if constexpr (Judged<TreeVerdict<A>..., FunctionVerdict<T, const A&...>,
                         FunctionVerdict<F, const A&...>>::ok()) {
      using R = result_t<T, const A&...>;
      constexpr bool same = std::same_as<R, result_t<F, const A&...>>;
      static_assert(same, "cond: both functions must return the same type");
      if constexpr (same) {
        using Branch = FunctionRef<R(const std::tuple<A...>&)>;
        const auto first = [&](const std::tuple<A...>& x) -> R { return std::apply(if_false, x); };
        const auto second = [&](const std::tuple<A...>& x) -> R { return std::apply(if_true, x); };
        return choose<R, A...>(w, "cond", predicate, true, std::vector<Branch>{first, second},
                               std::tuple<A...>(operands...));
      } else return refused<T, A...>();
    } else return refused<T, A...>();
  }
};

/// Implements switch_().
struct switch_fn {
  template <class... F, class... A>
  static auto call(Where w, const Array& index, const std::tuple<F...>& branches, const A&... operands) {
    if constexpr (Judged<TreeVerdict<A>..., FunctionVerdict<F, const A&...>...>::ok()) {
      constexpr bool some = sizeof...(F) > 0;
      static_assert(some, "switch_: there must be one branch or more");
      if constexpr (some) {
        using R = result_t<std::tuple_element_t<0, std::tuple<F...>>, const A&...>;
        constexpr bool same = (std::same_as<R, result_t<F, const A&...>> && ...);
        static_assert(same, "switch_: all branches must return the same type");
        if constexpr (same) {
          using Branch = FunctionRef<R(const std::tuple<A...>&)>;
          return std::apply(
              [&](const auto&... f) {
                const auto bound =
                    std::tuple{[&f](const std::tuple<A...>& x) -> R { return std::apply(f, x); }...};
                return std::apply(
                    [&](const auto&... b) {
                      return choose<R, A...>(w, "switch_", index, false, std::vector<Branch>{Branch(b)...},
                                             std::tuple<A...>(operands...));
                    },
                    bound);
              },
              branches);
        } else return Failed();
      } else return Failed();
    } else return Failed();
  }
  template <class F, class... A>
  static auto call(Where w, const Array& index, const std::vector<F>& branches, const A&... operands) {
    if constexpr (Judged<TreeVerdict<A>..., FunctionVerdict<F, const A&...>>::ok()) {
      using R = result_t<F, const A&...>;
      std::vector<std::function<R(const std::tuple<A...>&)>> bound;
      for (const F& f : branches)
        bound.push_back([&f](const std::tuple<A...>& x) -> R { return std::apply(f, x); });
      return choose<R, A...>(w, "switch_", index, false,
                             std::vector<FunctionRef<R(const std::tuple<A...>&)>>(bound.begin(), bound.end()),
                             std::tuple<A...>(operands...));
    } else return refused<F, A...>();
  }
};

}  // namespace detail

/// `cond(predicate, if_true, if_false, operands...)`: returns if_true(operands...) if the scalar `predicate` is true (a number:
/// non-zero), else if_false(operands...). Both are traced and compiled, one of them runs:
///
///     const Array y = cond(sum(x) > 0, [](const Array& v) { return log(v); }, [](const Array& v) { return v; }, x);
///
/// Operands and results are trees; functions may capture arrays. Both results must have the same type, structure, shapes and dtypes; a
/// weak type adopts the other's dtype. On several devices all run the same branch, as the predicate is a single number. Forward- and
/// reverse-mode derivatives are those of the branch that runs. Under vmap, a batched predicate turns it into `where`: both run.
///
/// Throws ShapeError for a predicate that is not a scalar; TreeError, ShapeError, DTypeError if the results differ; TraceError if a
/// branch reads values, prints or calls the host. Source: jax.lax.cond.
inline constexpr detail::PlacedFunction<detail::cond_fn> cond{};

/// `switch_(index, branches, operands...)`: returns branches[index](operands...), where branches is a std::tuple of functions or a
/// std::vector of functions of one type. The index is an integer scalar, clamped to the first and last branch. Otherwise as cond. Throws
/// as cond, ShapeError for no branches, DTypeError for an index that is not an integer. Source: jax.lax.switch.
inline constexpr detail::PlacedFunction<detail::switch_fn> switch_{};

/// Runs `while (condition(c)) c = body(c)` from `init` on; returns the last c:
///
///     const Array root = while_loop([&](const Array& r) { return abs(r * r - a) > 1e-6; },
///                                   [&](const Array& r) { return (r + a / r) / 2; }, a);
///
/// Both functions are compiled once; whether to continue is decided step by step, on GPUs by the host, which waits for the condition. The
/// carry is a tree that keeps its shapes, dtypes and structure (a weak type adopts the dtype that a step returns); the condition returns
/// a scalar, true or non-zero to continue. Forward-mode derivatives only, since reverse mode would store an unbounded number of steps:
/// grad throws Error and suggests fori_loop and scan. Under vmap it runs until no row continues; finished rows keep their carry.
///
/// Throws as scan for carries that change; ShapeError, DTypeError for a condition that is not a scalar; TraceError if a function reads
/// values, prints or calls the host. Source: jax.lax.while_loop.
template <class Condition, class Body, class C>
[[nodiscard]] C while_loop(const Condition& condition, const Body& body, const C& init,
                           Where w = Where::here()) {
  [[maybe_unused]] constexpr bool entered =
      requires(const typename detail::Entry<Condition, const C&>::Function& asks,
               const typename detail::Entry<Body, const C&>::Function& step, const C& c) {
    asks(c);
    step(c);
  };
  constexpr bool is_tree = !std::is_arithmetic_v<C>;
  static_assert(is_tree, "while_loop: the first carry is a number, which no step changes; write Array(x)");
  if constexpr (is_tree && detail::TreeCheck<C>::ok()) {
    constexpr bool asks = std::is_invocable_r_v<Array, const Condition&, const C&>;
    static_assert(asks, "while_loop: the condition must take the carry and return one Array, a scalar");
    constexpr bool steps = std::is_invocable_r_v<C, const Body&, const C&>;
    static_assert(steps, "while_loop: the body must take the carry and return the next one");
    if constexpr (asks && steps) {
      detail::Structure before = detail::structure(init, true);
      C result = init;
      const auto with = [&](std::span<const Array> placeholders) {
        C c = init;
        std::size_t next = 0;
        detail::each_leaf(c, [&](Array& a, const Path&) {
          if (a.has_value()) a = placeholders[next++];
        });
        return c;
      };
      const auto ask = [&](std::span<const Array> x) { return core::Arrays{condition(with(x))}; };
      const auto step = [&](std::span<const Array> x) {
        const C next = body(with(x));
        before.rewind();
        detail::walk(
            const_cast<C&>(next), Path{}, [](Array&, const Path&) {},
            [&](const detail::StaticValue& v, const Path& p) {
              if (!before.next_is(v)) core::throw_carry_structure(p, "while_loop");
            });
        return detail::slots(next);
      };
      detail::set_slots(result, core::while_loop(ask, step, detail::scan_leaves(init), w));
      return result;
    }
  }
  return init;
}

}  // namespace shardarray
