// jit: traces a function once per kind of arguments, compiles it, and launches it as one program.
#pragma once
#include <algorithm>

// In this order: compilers print the include path of a header with an error.
#include "shardarray/array.h"
#include "shardarray/tree.h"
#include "shardarray/tree_filter.h"

#include "shardarray/detail/call.h"
#include "shardarray/detail/jit_call.h"
#include "shardarray/detail/placed_call.h"

namespace shardarray {

namespace detail {

[[nodiscard]] inline bool option_donates(const JitOptions& o, std::size_t i) {
  return o.donate == Donate::all || (o.donate == Donate::all_except_first && i > 0) ||
         std::find(o.donate_args.begin(), o.donate_args.end(), static_cast<int>(i)) != o.donate_args.end();
}
/// Adds argument `i` of `n` to the call: its type, leaves and statics.
template <class T>
[[gnu::noinline]] void flatten(core::JitCall& call, const T& tree, std::size_t i, std::size_t n, bool moved,
                               const JitOptions& options) {
  const bool option_donated = option_donates(options, i);
  call.word(reinterpret_cast<std::uintptr_t>(&type_tag<T>));
  auto leaf = [&](Array& a, const Path& path) {
    if (a.has_value()) call.leaf(a, moved ? &a : nullptr, option_donated, path);
    else call.word(~0ull);
  };
  auto value = [&](const StaticValue& v, const Path&) {
    const bool is_text = v.kind == StaticValue::Kind::text || v.kind == StaticValue::Kind::key;
    if (is_text && v.word == 0) call.text(v.text);
    else call.word(v.word);
  };
  walk(const_cast<T&>(tree), Path{nullptr, {}, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(n)},
       leaf, value);
}
/// What only messages need: the paths of leaves, and the statics.
template <class T>
[[gnu::noinline, gnu::cold]] void describe(core::JitCall& call, const T& tree, std::size_t i, std::size_t n) {
  auto leaf = [&](Array& a, const Path& path) {
    if (a.has_value()) call.paths.push_back(path.text());
  };
  auto value = [&](const StaticValue& v, const Path& path) {
    call.statics.emplace_back(path.text(), to_string(v));
  };
  walk(const_cast<T&>(tree), Path{nullptr, {}, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(n)},
       leaf, value);
}
SHARDARRAY_API void check_static_args(const JitOptions& options, std::size_t arguments,
                                      std::span<const std::string> paths);
template <class A>
inline constexpr bool gives_away =  // A as deduced for A&&
    !std::is_lvalue_reference_v<A> && !std::is_const_v<A>;
template <class T> inline constexpr bool gives_away<Donated<T>> = true;
template <class T> inline constexpr bool gives_away<Donated<T>&> = true;
template <class T> inline constexpr bool gives_away<const Donated<T>&> = true;

template <class R, class... T>
[[gnu::noinline, gnu::cold]] std::shared_ptr<const core::JitEntry> trace(core::JitCache& cache,
                                                                         core::JitCall& call, Body<R, T...> f,
                                                                         Where w, const T&... args) {
  const JitOptions& options = core::jit_options(cache);
  [[maybe_unused]] std::size_t i = 0;
  (describe(call, args, i++, sizeof...(T)), ...);
  check_static_args(options, sizeof...(T), call.paths);
  const UserSite user(w);
  core::JitTrace open(call, options);
  std::tuple<T...> copy{args...};
  set_argument_leaves(copy, open.placeholders());
  auto result = std::make_shared<R>(f(std::move(copy)));
  const core::Arrays outputs = slots(*result);
  set_slots(*result, core::Arrays(outputs.size()));  // the prototype keeps no recorded node alive
  return core::jit_finish(cache, call, open, outputs, std::move(result));
}
/// The program for these arguments, traced if it is new.
template <class R, class... T>
[[gnu::noinline]] std::shared_ptr<const core::JitEntry> lower(core::JitCache& cache, core::JitCall& call,
                                                              Body<R, T...> f,
                                                              std::initializer_list<bool> moved, Where w,
                                                              const T&... args) {
  [[maybe_unused]] constexpr std::size_t n = sizeof...(T);
  [[maybe_unused]] const JitOptions& options = core::jit_options(cache);
  [[maybe_unused]] std::size_t i = 0;
  ((flatten(call, args, i, n, moved.begin()[i], options), i++), ...);
  if (auto entry = core::jit_find(cache, call)) return entry;
  return trace<R, T...>(cache, call, f, w, args...);
}
template <class R, class... T>
[[gnu::noinline]] R call_program(core::JitCache& cache, Body<R, T...> f, std::initializer_list<bool> moved,
                                 Where w, const T&... args) {
  core::ReusedCall call(core::jit_options(cache).name.c_str());
  (*call).where = w;
  const auto entry = lower<R, T...>(cache, *call, f, moved, w, args...);
  R result = *static_cast<const R*>(core::jit_prototype(*entry).get());
  set_slots(result, core::jit_launch(*entry, *call));
  return result;
}

}  // namespace detail

/// A function with its compiled programs. Copies share them; may be called from several threads at once.
template <class F> class Jitted : public detail::PlacedCall<Jitted<F>> {
 public:
  /// Not part of the public interface: whether the call is valid, and what an invalid call returns.
  template <class... A>
  using Verdict = detail::AllGood<detail::TreeVerdict<detail::argument_t<A>>...,
                                  detail::FunctionVerdict<F, detail::argument_t<A>...>>;
  template <class... A> using RefusedCall = detail::refused_t<F, detail::argument_t<A>...>;
  template <class... A> using Entry = detail::Entry<F, detail::argument_t<A>...>;
  Jitted(F f, std::shared_ptr<core::JitCache> cache) : f_(std::move(f)), cache_(std::move(cache)) {}

  /// Calls `f(args...)`, for the source line `w`. Arguments are trees: arrays are traced, everything else is part of the program.
  /// Arguments that are moved in are donated: after the launch they are deleted (is_deleted()), and their memory is reused unless
  /// something else owns it. If more than 4 KB of a placed array donated by an option or by std::move of a variable cannot be reused,
  /// that is reported on stderr, once per call site. A call that throws donates nothing, unless it fails after running: if a callback
  /// throws, there are no results and the donated arrays are gone.
  ///
  /// Throws whatever the function throws while it is traced; TraceError if it reads a value or lets one escape; DonationError for an
  /// array donated before, or donated by option and passed twice; DeviceError for arguments committed to different devices; ShardingError
  /// for in_shardings and out_shardings that do not fit; TreeError if static_args or donate_args name no argument, or static_args one
  /// that has arrays; OutOfMemory.
  template <class... A> [[nodiscard]] auto call(Where w, A&&... args) const {
    if constexpr (detail::Judged<Verdict<A...>>::ok()) {
      return detail::call_program<detail::result_t<F, detail::argument_t<A>...>, detail::argument_t<A>...>(
          *cache_, detail::body<detail::argument_t<A>...>(f_), {detail::gives_away<A>...}, w,
          detail::argument(args)...);
    } else return detail::refused<F, detail::argument_t<A>...>();
  }
  /// Fills `call` with the arguments and returns their program, traced if it is new. Runs and donates nothing.
  template <class... A>
  [[nodiscard]] std::shared_ptr<const core::JitEntry> lower(core::JitCall& call, Where w, A&&... args) const {
    return detail::lower<detail::result_t<F, detail::argument_t<A>...>, detail::argument_t<A>...>(
        *cache_, call, detail::body<detail::argument_t<A>...>(f_), {detail::gives_away<A>...}, w,
        detail::argument(args)...);
  }
  /// The function itself.
  [[nodiscard]] const F& function() const { return f_; }
  /// The options passed to jit().
  [[nodiscard]] const JitOptions& options() const { return core::jit_options(*cache_); }
  /// The number of times the function was traced.
  [[nodiscard]] int traces() const { return core::jit_traces(*cache_); }
  /// The number of traces kept, at most max_entries.
  [[nodiscard]] std::size_t cache_size() const { return core::jit_cache_size(*cache_); }

 private:
  F f_;
  std::shared_ptr<core::JitCache> cache_;
};

/// `jit(f)` behaves like `f` but runs as compiled programs: one per combination of leaf types, shardings, statics and donated leaves.
/// Numbers and strings are static: another value is another program; pass an Array to avoid that. A string may be a literal, a
/// `const char*` or a string_view: the function receives a std::string.
///
/// A captured array keeps the value it had when the function was traced. It is a leaf of the program like an argument that is never
/// donated: it keeps its placement and, if committed, determines like an argument where the program runs and what its results are
/// committed to. Throws DeviceError, naming the array, if it is committed to other devices than an argument: device_put it there, or pass
/// it as an argument. A function that captures a value of an enclosing trace or gradient is traced at every call.
///
/// A temporary counts as moved in: `f(make())` and `f(x)` are two programs.
template <class F> [[nodiscard]] Jitted<F> jit(F f) { return {std::move(f), core::make_jit_cache()}; }
template <class F> [[nodiscard]] Jitted<F> jit(F f, JitOptions options) {
  return {std::move(f), core::make_jit_cache(std::move(options))};
}
/// Equinox's name for jit().
template <class F> [[nodiscard]] Jitted<F> filter_jit(F f) { return jit(std::move(f)); }
template <class F> [[nodiscard]] Jitted<F> filter_jit(F f, JitOptions options) {
  return jit(std::move(f), std::move(options));
}

}  // namespace shardarray
