// Filtering trees: some of the arrays, the others absent.
#pragma once
#include <concepts>
#include <string>
#include <utility>
#include <vector>

#include "shardarray/tree.h"

namespace shardarray {

/// Predicates for filter() and partition(): whether it is an array at all; whether it is floating or complex.
inline constexpr struct is_array_fn {
  [[nodiscard]] bool operator()(const Array& x) const { return x.has_value(); }
} is_array{};
inline constexpr struct is_inexact_array_fn {
  [[nodiscard]] bool operator()(const Array& x) const { return x.has_value() && is_inexact(x.dtype()); }
} is_inexact_array{};

namespace detail {
template <class F>
inline constexpr bool is_leaf_predicate =
    std::predicate<const F&, const Array&> || std::predicate<const F&, const Array&, const std::string&>;
}  // namespace detail
/// Selects arrays of a tree: by the array, or by the array and its path (`layers[0].bias`).
template <class F>
concept LeafPredicate = detail::is_leaf_predicate<F>;

namespace detail {
template <class F> bool chooses(const F& keep, const Array& x, const Path& path) {
  if constexpr (std::predicate<const F&, const Array&>) return keep(x);
  else return keep(x, path.text());
}
}  // namespace detail

/// `t` with arrays that fail `keep` made absent; statics are kept. `keep` only sees present arrays.
template <Tree T, LeafPredicate F> [[nodiscard]] T filter(T t, const F& keep) {
  detail::each_leaf(t, [&](Array& a, const Path& p) {
    if (a.has_value() && !detail::chooses(keep, std::as_const(a), p)) a = Array();
  });
  return t;
}
/// Splits a tree into (the arrays that pass, the others), which `combine` merges again. To separate trainable parameters by path:
/// `partition(model, [](const Array&, const std::string& path) { return path.ends_with("lora"); })`.
template <Tree T, LeafPredicate F> [[nodiscard]] std::pair<T, T> partition(const T& t, const F& keep) {
  std::pair<T, T> parts(t, t);
  std::vector<bool> kept;
  detail::each_leaf(parts.first, [&](Array& a, const Path& p) {
    kept.push_back(a.has_value() && detail::chooses(keep, std::as_const(a), p));
    if (!kept.back()) a = Array();
  });
  std::size_t i = 0;
  detail::each_leaf(parts.second, [&](Array& a, const Path&) {
    if (kept[i++]) a = Array();
  });
  return parts;
}
/// @cond
template <class T, class F>
requires(!Tree<T> && (std::same_as<F, is_array_fn> || std::same_as<F, is_inexact_array_fn>)) [[nodiscard]] T
    filter(T t, const F&) {
  (void)detail::TreeCheck<T>::ok();
  return t;
}
/// @endcond

}  // namespace shardarray
