// vmap: turns a function of one example into a function of a batch.
#pragma once
#include "shardarray/detail/call.h"
#include "shardarray/detail/maps.h"
#include "shardarray/detail/placed_call.h"

namespace shardarray {

/// Which dimension is mapped: one for everything (`0`, `-1`), `none`, or a list with an entry for each argument, element or field, nested
/// as needed: `{0, none, {0, 1}}`. In a struct, entries for static fields (numbers, strings, enums) may be omitted: for
/// `{Array w; int n; Array b;}` `{0, none}` is `{0, 0, none}`.
class SHARDARRAY_API Axes {
 public:
  template <std::integral I> Axes(I axis) : axis_(to_int64(axis)) {}
  Axes(none_t) {}
  Axes(std::initializer_list<Axes> entries) : is_list_(true), entries_(entries) {}
  /// The entry for an array. Throws TreeError if the lists do not fit the tree; `option` is the name used in the message.
  [[nodiscard]] std::optional<std::int64_t> at(const Path& path, const char* function,
                                               const char* option) const;

 private:
  bool is_list_ = false;
  std::optional<std::int64_t> axis_;
  std::vector<Axes> entries_;
};

/// Options of vmap(): `vmap(f, {.in_axes = {0, none}})`.
struct VmapOptions {
  Axes in_axes =
      0;  ///< of the arguments; negative ones count from the end; none: the same value for every element
  Axes out_axes =
      0;  ///< position of the mapped dimension in the results; none: results that do not depend on it
  std::string axis_name = {};                            ///< for collectives: psum(x, "i")
  std::optional<std::int64_t> axis_size = std::nullopt;  ///< required if no argument is mapped
};

namespace detail {

/// The present arrays of the arguments, with their entries of `in_axes`.
template <class... A>
[[gnu::noinline]] std::vector<core::VmapArg> mapped_leaves(const std::tuple<A...>& args, const Axes& in_axes,
                                                           const char* function) {
  std::vector<core::VmapArg> leaves;
  each_argument_leaf(args, [&](const Array& a, const Path& p) {
    if (a.has_value()) leaves.push_back({a, in_axes.at(p, function, "in_axes"), p.text()});
  });
  return leaves;
}
/// The arguments with other arrays.
template <class... A>
[[gnu::noinline]] std::tuple<A...> with_leaves(const std::tuple<A...>& args, std::span<const Array> next) {
  std::tuple<A...> copy = args;
  set_argument_leaves(copy, next);
  return copy;
}
/// Replaces every present array of a result by place(k, axis): k counts the arrays, axis is its entry of `out_axes`.
template <class T>
[[gnu::noinline]] void place_mapped(T& result, const Axes& out_axes, const char* function,
                                    FunctionRef<Array(std::size_t, std::optional<std::int64_t>)> place) {
  std::size_t k = 0;
  each_leaf(result, [&](Array& a, const Path& p) {
    if (a.has_value()) a = place(k, out_axes.at(p, function, "out_axes"));
    k++;
  });
}

/// Runs `f` on the elements of the arguments by `run`; places the mapped dimension of the results by `place`.
template <class R, class... A>
R map_trees(Body<R, A...> f, const Axes& in_axes, const Axes& out_axes, const char* function,
            FunctionRef<core::VmapResult(core::MapBody, std::span<const core::VmapArg>)> run,
            FunctionRef<Array(const core::VmapResult&, std::size_t, std::optional<std::int64_t>)> place,
            const A&... args) {
  const std::tuple<A...> originals{args...};
  std::optional<R> result;
  const core::VmapResult r = run(
      [&](std::span<const Array> placeholders) {
        result.emplace(f(with_leaves(originals, placeholders)));
        return slots(*result);
      },
      mapped_leaves(originals, in_axes, function));
  place_mapped(*result, out_axes, function,
               [&](std::size_t k, std::optional<std::int64_t> axis) { return place(r, k, axis); });
  return std::move(*result);
}

template <class R, class... A>
[[gnu::noinline]] R map_batch(Body<R, A...> f, const VmapOptions& o, Where where, const A&... args) {
  return map_trees<R, A...>(
      f, o.in_axes, o.out_axes, "vmap",
      [&](core::MapBody body, std::span<const core::VmapArg> leaves) {
        return core::vmap(body, leaves, o.axis_name, o.axis_size, "vmap", where);
      },
      [&](const core::VmapResult& r, std::size_t k, std::optional<std::int64_t> axis) {
        return core::place_axis(r, k, axis, o.axis_name, "vmap");
      },
      args...);
}

/// The result of vmap().
template <class F> struct MappedOverRows : PlacedCall<MappedOverRows<F>> {
  MappedOverRows(F function, VmapOptions o) : f(std::move(function)), options(std::move(o)) {}
  template <class... A> using Verdict = AllGood<TreeVerdict<A>..., FunctionVerdict<F, A...>>;
  template <class... A> using RefusedCall = refused_t<F, A...>;
  template <class... A> using Entry = detail::Entry<F, A...>;
  template <class... A> auto call(Where w, const A&... args) const {
    if constexpr (Judged<Verdict<A...>>::ok())
      return map_batch<result_t<F, A...>, A...>(body<A...>(f), options, w, args...);
    else return refused<F, A...>();
  }
  F f;
  VmapOptions options;
};

}  // namespace detail

/// Vectorises `f`, which may be a module: inside, mapped arrays lack the mapped dimension of size n; each result has it at `out_axes`.
/// Arguments and results are trees of the same types as for f; statics are shared by all elements. f is called once, and cannot read
/// values (TraceError).
///
/// Throws ShapeError if mapped sizes differ from each other or from axis_size, nothing is mapped and there is no axis_size, an axis is
/// out of range, or a result with out_axes none differs between elements; TreeError if axes do not fit the trees.
template <class F> [[nodiscard]] auto vmap(F f, VmapOptions options = {}) {
  return detail::MappedOverRows<F>(std::move(f), std::move(options));
}

}  // namespace shardarray
