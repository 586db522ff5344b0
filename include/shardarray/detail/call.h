// What the function wrappers share: checks of the function, and copies of its arguments with other arrays in them.
#pragma once
#include <string>
#include <string_view>
#include <tuple>

#include "shardarray/tree.h"

#include "shardarray/detail/placed_call.h"

namespace shardarray {

/// Donates an argument without a move: `step(donated(model), x)` empties the arrays of `model` as `step(std::move(model), x)`
/// does. Refers to its argument.
template <class T> struct Donated { T& value; };
template <class T> Donated<T> donated(T&& tree) = delete;  // a temporary is donated anyway
template <class T> [[nodiscard]] Donated<T> donated(T& tree) {
  static_assert(!std::is_const_v<T>,
                "donated: the argument is const; only what can be emptied can be given away");
  return {tree};
}

namespace detail {

template <class T> inline constexpr char type_tag = 0;  // its address identifies the type

/// Text other than std::string: a literal, a pointer to characters, a view.
template <class A>
concept Text = !std::same_as<A, std::string> &&
               (std::same_as<std::decay_t<A>, const char*> || std::same_as<std::decay_t<A>, char*> ||
                std::same_as<A, std::string_view>);
template <class A> struct ArgumentOf { using type = A; };
template <class T> struct ArgumentOf<Donated<T>> { using type = std::remove_const_t<T>; };
template <Text A> struct ArgumentOf<A> { using type = std::string; };
/// The type of an argument's tree; text becomes a std::string.
template <class A> using argument_t = typename ArgumentOf<std::remove_cvref_t<A>>::type;
template <class A> auto& argument(A& a) { return a; }
template <class A>
requires Text<std::remove_cv_t<A>> std::string argument(A& text) { return std::string(text); }
template <class T> T& argument(Donated<T>& d) { return d.value; }
template <class T> T& argument(const Donated<T>& d) { return d.value; }

/// The result of F for copies of the arguments.
template <class F, class... A> using result_t = std::remove_cvref_t<std::invoke_result_t<const F&, A...>>;

/// A function that gets its own copies of the arguments. The type does not contain the function, so the code that traces it is
/// compiled once for all functions of these types.
template <class R, class... A> using Body = FunctionRef<R(std::tuple<A...>&&)>;
template <class... A, class F> Body<result_t<F, A...>, A...> body(const F& f) {
  return {&f, [](void* object, std::tuple<A...>&& args) -> result_t<F, A...> {
            return std::apply(*static_cast<const F*>(object), std::move(args));
          }};
}

template <class F, class... A> struct CanBeCalled {
  static consteval bool ok() {
    constexpr bool fits = std::invocable<const F&, A...>;
    static_assert(
        fits,
        "shardarray: the function cannot be called with these argument types; it gets copies, so take "
        "arguments by value or const&");
    return fits;
  }
};
template <class F, class R> struct ReturnsArrays {
  static consteval bool ok() {
    constexpr bool fits = !std::is_void_v<R>;
    static_assert(fits, "shardarray: the function returns nothing; return the new arrays");
    return fits;
  }
};
template <class F, class... A> struct EntryInto {
  using type = EntryOf<(TreeVerdict<std::remove_cvref_t<A>>::good && ...), F, A...>;
};
template <class F, class... A>
requires requires { typename F::template Entry<std::remove_cvref_t<A>...>; }
struct EntryInto<F, A...> {
  using type = typename F::template Entry<std::remove_cvref_t<A>...>;
};
/// The function that PlacedCall checks when a wrapper of F is called with such arguments: F, or what F wraps.
template <class F, class... A> using Entry = typename EntryInto<F, A...>::type;
template <class F, class R> struct ResultVerdict : TreeVerdict<std::remove_cvref_t<R>> {};
template <class F> struct ResultVerdict<F, void> {
  static constexpr bool good = false;
  using Complaint = ReturnsArrays<F, void>;
};
template <class F, class... A> struct CallVerdict {
  static constexpr bool good = false;
  using Complaint = CanBeCalled<F, A...>;
};
template <class F, class... A>
requires std::invocable<const F&, A...>
struct CallVerdict<F, A...> : ResultVerdict<F, std::invoke_result_t<const F&, A...>> {
};
/// Can F be called with these arguments, and is its result a tree? Judged after the arguments. A function that judges its calls itself
/// (its Verdict) is asked first: otherwise compilers list the path into it.
template <class F, class... A> struct FunctionVerdict : CallVerdict<F, A...> {};
template <class F, class... A>
requires requires { typename F::template Verdict<std::remove_cvref_t<A>...>; }
struct FunctionVerdict<F, A...>
    : AllGood<typename F::template Verdict<std::remove_cvref_t<A>...>, CallVerdict<F, A...>> {};

template <class... T, class L> void each_argument_leaf(const std::tuple<T...>& args, const L& leaf) {
  std::apply(
      [&](const auto&... a) {
        [[maybe_unused]] std::uint32_t i = 0;
        (each_leaf(a, leaf, Path{nullptr, {}, i++, sizeof...(T)}), ...);
      },
      args);
}
/// Replaces the present arrays of the arguments in order.
template <class... T> void set_argument_leaves(std::tuple<T...>& args, std::span<const Array> next) {
  std::size_t i = 0;
  auto set = [&](Array& a, const Path&) {
    if (a.has_value()) a = next[i++];
  };
  std::apply([&](auto&... a) { (each_leaf(a, set), ...); }, args);
}

}  // namespace detail
}  // namespace shardarray
