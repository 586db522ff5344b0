// Parts of trees: some of the arrays, the others absent.
#pragma once
#include <concepts>
#include <string>
#include <utility>
#include <vector>

#include "shardarray/tree.h"

namespace shardarray {

/// Predicates for filter() and partition(): is an array at all; is a floating or complex one.
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
/// Chooses arrays of a tree: by the array, or by the array and its path (`layers[0].bias`).
template <class F>
concept LeafPredicate = detail::is_leaf_predicate<F>;

namespace detail {
template <class F> bool chooses(const F& keep, const Array& x, const Path& path) {
  if constexpr (std::predicate<const F&, const Array&>) return keep(x);
  else return keep(x, path.text());
}
}  // namespace detail

/// `t` without the arrays that fail `keep`, which are absent then; statics stay. `keep` sees present arrays only.
template <Tree T, LeafPredicate F> [[nodiscard]] T filter(T t, const F& keep) {
  detail::each_leaf(t, [&](Array& a, const Path& p) {
    if (a.has_value() && !detail::chooses(keep, std::as_const(a), p)) a = Array();
  });
  return t;
}
/// (the arrays that pass, the others): `combine` puts them together again. Parameters to be trained and others, by their paths:
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
