// scan, fori_loop, map: repeated steps, compiled once.
#pragma once
// In this order: compilers print the include path of a header with an error.
#include "shardarray/array.h"
#include "shardarray/tree.h"

#include "shardarray/detail/call.h"
#include "shardarray/detail/maps.h"
#include "shardarray/ops.h"
#include "shardarray/vmap.h"

namespace shardarray {

/// Options of scan().
struct ScanOptions {
  std::optional<std::int64_t> length =
      std::nullopt;      ///< number of steps; required if nothing is scanned over
  bool reverse = false;  ///< from the last element to the first; ys stay aligned with their xs
};

namespace core {

/// A slot of a tree, with or without an array.
struct ScanLeaf {
  Array array;
  std::string path;
};
/// `f` takes the present carries and one element of each present sequence; it returns the carries, in all slots, and the slots of a
/// step's output. Returns the last carries and the stacked outputs of the steps.
SHARDARRAY_API Arrays scan(MapBody f, std::span<const ScanLeaf> init, std::span<const ScanLeaf> xs,
                           const ScanOptions& options, const char* function, Where w);
/// The first `i` of a fori_loop, and its number of steps. Throws ShapeError if that does not fit into 63 bits.
[[nodiscard]] SHARDARRAY_API Array loop_counter(std::int64_t lo, std::int64_t hi);
[[nodiscard]] SHARDARRAY_API std::int64_t loop_length(std::int64_t lo, std::int64_t hi);
/// Throws TreeError: sizes, keys or static values at `path` of the carry differ after a step.
[[noreturn]] SHARDARRAY_API void throw_carry_structure(const Path& path, const char* function);
/// Sequences in batches: [n / size, size, ..], and the remainder, [n % size, ..] (empty if there is none).
struct Batches {
  Arrays whole, rest;
};
SHARDARRAY_API Batches map_batches(std::span<const ScanLeaf> xs, std::int64_t size, Where w);
/// Concatenates the results of batches and remainder.
SHARDARRAY_API Arrays join_batches(const Arrays& whole, const Arrays& rest, Where w);

}  // namespace core

namespace detail {

template <class T> [[gnu::noinline]] std::vector<core::ScanLeaf> scan_leaves(const T& t) {
  std::vector<core::ScanLeaf> leaves;
  each_leaf(t, [&](const Array& a, const Path& p) { leaves.push_back({a, p.text()}); });
  return leaves;
}

/// The result type of a scan step.
template <class T> inline constexpr bool is_step = false;
template <class C, class Y> inline constexpr bool is_step<std::pair<C, Y>> = true;
template <class T, class C>
inline constexpr bool keeps_carry = true;  // other errors are reported for what is no step at all
template <class D, class Y, class C>
inline constexpr bool keeps_carry<std::pair<D, Y>, C> = std::same_as<D, C>;
template <class C> struct CarryIsTree {
  static consteval bool ok() {
    constexpr bool fits = !std::is_arithmetic_v<C>;
    static_assert(fits, "scan: the first carry is a number, which no step changes; write Array(x)");
    return fits;
  }
};
template <class C> struct CarryVerdict {
  static constexpr bool good = !std::is_arithmetic_v<C>;
  using Complaint = CarryIsTree<C>;
};
template <class Result, class C> struct IsStep {
  static consteval bool ok() {
    static_assert(is_step<Result>, "scan: the function must return std::pair(carry, y)");
    static_assert(keeps_carry<Result, C>, "scan: the function returns a carry of another type than it takes");
    return is_step<Result> && keeps_carry<Result, C>;
  }
};
template <class F, class C, class X> struct StepVerdict {
  using Result = result_t<F, C, X>;
  static constexpr bool good = is_step<Result> && keeps_carry<Result, C>;
  using Complaint = IsStep<Result, C>;
};
/// Checked first: says what is wrong with a function or an initial carry.
template <class F, class C, class X>
using ScanCheck =
    Judged<CarryVerdict<C>, TreeVerdict<C>, TreeVerdict<X>, FunctionVerdict<F, C, X>, StepVerdict<F, C, X>>;

template <class F, class C, class X>
auto scan_as(const char* function, const F& f, const C& init, const X& xs, const ScanOptions& options,
             Where w) {
  using Result = result_t<F, C, X>;
  Structure before = structure(init, true);
  std::optional<Result> result;
  const auto body = [&](std::span<const Array> placeholders) {
    std::tuple<C, X> next{init, xs};
    set_argument_leaves(next, placeholders);
    result.emplace(std::apply(f, next));
    before.rewind();
    walk(
        result->first, Path{}, [](Array&, const Path&) {},
        [&](const StaticValue& v, const Path& p) {
          if (!before.next_is(v)) core::throw_carry_structure(p, function);
        });
    return slots(*result);
  };
  const core::Arrays out = core::scan(body, scan_leaves(init), scan_leaves(xs), options, function, w);
  set_slots(*result, out);
  return std::move(*result);
}

}  // namespace detail

/// Loops over the leading dimension of `xs`: `(carry, y) = f(carry, x)` for x = xs[0], xs[1], ... Returns the pair of the last carry and
/// the ys, stacked along a new leading dimension:
///
///     auto [h, hs] = scan([&](Array h, Array x) { h = tanh(matmul(x, w) + matmul(h, u)); return std::pair(h, h); }, h0, xs);
///
/// The carry, xs and ys are trees; `xs` may be `none` if a length is given, and f then receives `none`. The step is compiled once and
/// runs repeatedly on the devices, with two buffers for the carry. All placements are fixed before the first step: the carry stays where
/// it is initially, or sharded as the steps leave it; sequences are not sharded along the steps. The derivative stores the carries of all
/// steps and recomputes the rest of each step.
///
/// f is traced once, or twice if a weakly typed carry is promoted by the first step (0 with float32: float32; 1.5 with int32: float32,
/// which the step must then return). Throws ShapeError, DTypeError, TreeError if a step changes the shape, dtype or structure of the
/// carry; ShapeError for sequences of different lengths or without a leading dimension, and a length that differs or is missing;
/// TraceError if f prints or calls the host: return from the steps what you want to see. Source: jax.lax.scan.
template <class F, class C, class X>
[[nodiscard]] auto scan(const F& f, const C& init, const X& xs, const ScanOptions& options = {},
                        Where w = Where::here()) {
  // Entered here, so that compilers report errors in its body close to the user's line.
  [[maybe_unused]] constexpr bool entered =
      requires(const typename detail::Entry<F, C, X>::Function& step, C c, X x) {
    step(std::move(c), std::move(x));
  };
  if constexpr (detail::ScanCheck<F, C, X>::ok()) return detail::scan_as("scan", f, init, xs, options, w);
  else return std::pair<C, detail::Failed>();
}

/// Runs `c = f(i, c)` for i = lo, lo + 1, .. hi - 1; returns the last c, or `init` if there are no steps, with the dtypes that steps
/// would give it. `i` is a weakly typed int32 scalar (int64 if lo or hi require it): it adopts the dtype of what it is combined with. A
/// carry that steps update only in part (`c.at(i).set(v)`, dynamic_update_slice) is updated in place in one buffer. Throws as scan does,
/// and ShapeError for 2^63 steps or more. Source: jax.lax.fori_loop.
template <class F, class C>
[[nodiscard]] C fori_loop(std::int64_t lo, std::int64_t hi, const F& f, const C& init,
                          Where w = Where::here()) {
  [[maybe_unused]] constexpr bool entered = requires(
      const typename detail::Entry<F, const Array&, const C&>::Function& step, const Array& i, const C& c) {
    step(i, c);
  };
  constexpr bool fits = std::is_invocable_r_v<C, const F&, const Array&, const C&>;
  static_assert(fits, "fori_loop: the function must take (Array i, carry) and return the carry");
  if constexpr (fits) {
    using Counted = std::pair<Array, C>;
    const auto step = [&](const Counted& c, none_t) {
      return std::pair<Counted, none_t>({c.first + 1, f(c.first, c.second)}, none);
    };
    const Counted first(core::loop_counter(lo, hi), init);
    return detail::scan_as("fori_loop", step, first, none, {.length = core::loop_length(lo, hi)}, w)
        .first.second;
  } else return init;
}

/// Options of map().
struct MapOptions {
  std::optional<std::int64_t> batch_size = std::
      nullopt;  ///< elements processed together by vmap; the rest is one smaller batch. none: one element after another
};
/// Applies f to every element of `xs` along the leading dimension and stacks the results: `vmap(f)(xs)` one by one, in the memory of one:
///
///     const Array norms = map([](const Array& row) { return sqrt(sum(row * row)); }, rows);
///
/// xs and the results of f are trees. Throws as scan does; ShapeError for a batch size below 1. Source: jax.lax.map.
template <class F, class X>
[[nodiscard]] auto map(const F& f, const X& xs, const MapOptions& options = {}, Where w = Where::here()) {
  [[maybe_unused]] constexpr bool entered = requires(const typename detail::Entry<F, X>::Function& g, X x) {
    g(std::move(x));
  };
  if constexpr (detail::Judged<detail::TreeVerdict<X>, detail::FunctionVerdict<F, X>>::ok()) {
    using R = detail::result_t<F, X>;
    const auto each = [&](const X& elements) -> R {
      const auto step = [&](none_t, const X& x) { return std::pair<none_t, R>(none, f(x)); };
      return detail::scan_as("map", step, none, elements, {}, w).second;
    };
    if (!options.batch_size) return each(xs);
    const core::Batches batches = core::map_batches(detail::scan_leaves(xs), *options.batch_size, w);
    const auto with = [&](const core::Arrays& arrays) {
      X r = xs;
      detail::set_slots(r, arrays);
      return r;
    };
    const auto batch = [&](const X& x) -> R { return vmap(f).call(w, x); };
    const auto step = [&](none_t, const X& x) { return std::pair<none_t, R>(none, batch(x)); };
    R result = detail::scan_as("map", step, none, with(batches.whole), {}, w).second;
    core::Arrays rest;
    if (!batches.rest.empty()) rest = detail::slots(batch(with(batches.rest)));
    detail::set_slots(result, core::join_batches(detail::slots(result), rest, w));
    return result;
  } else return detail::refused<F, X>();
}

}  // namespace shardarray
