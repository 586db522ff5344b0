// Placing trees: filter_shard, device_put; evaluating them: eval; updating models: apply_updates.
#pragma once
#include <map>
#include <set>
#include <string>

#include "shardarray/detail/placed_call.h"
#include "shardarray/placement.h"
#include "shardarray/tree.h"
#include "shardarray/tree_filter.h"

namespace shardarray {

namespace detail {

template <class S>
concept OnePlace = std::same_as<S, Device> || std::convertible_to<const S&, Sharding>;
inline Sharding as_sharding(const Device& d) { return SingleDeviceSharding(d); }
inline Sharding as_sharding(const Sharding& s) { return s; }

using PlaceRef = FunctionRef<Array(const Array&, const Sharding&, const Path&)>;
[[noreturn]] SHARDARRAY_API void throw_sharding_tree(std::size_t wanted, std::size_t given, const Path& path,
                                                     const char* function);

/// Places every array of `t` as the prefix tree `s` says: one place for a whole subtree, or a tuple, vector or struct with an entry for
/// each part; numbers and strings after the last array need none. `none` leaves a subtree alone.
template <class T, class S>
void place(T& t, const S& s, const Path& path, PlaceRef put, const char* function);

template <class... T, class... S>
void place_parts(const Path& path, PlaceRef put, const char* function, std::tuple<T&...> t,
                 std::tuple<const S&...> s) {
  [&]<std::size_t... K>(std::index_sequence<K...>) {
    (place(std::get<K>(t), std::get<K>(s), Path{&path, {}, K, sizeof...(T)}, put, function), ...);
  }
  (std::index_sequence_for<S...>{});
}
template <class T> auto parts(T& t) {
  if constexpr (is_tuple<std::remove_const_t<T>>)
    return std::apply([](auto&... f) { return std::tie(f...); }, t);
  else return with_fields(t, [](auto&... f) { return std::tie(f...); });
}
template <class T, class S>
void place(T& t, const S& s, const Path& path, PlaceRef put, const char* function) {
  if constexpr (OnePlace<S>) {
    const Sharding to = as_sharding(s);
    each_leaf(
        t,
        [&](Array& a, const Path& p) {
          if (a.has_value()) a = put(a, to, p);
        },
        path);
  } else if constexpr (std::same_as<S, none_t>) {
    return;
  } else if constexpr (is_optional<T>) {
    if (t) place(*t, s, path, put, function);
  } else if constexpr (is_sequence<S> && is_sequence<T>) {
    if (s.size() != t.size()) throw_sharding_tree(t.size(), s.size(), path, function);
    const auto n = static_cast<std::uint32_t>(t.size());
    for (std::uint32_t k = 0; k < n; k++) place(t[k], s[k], Path{&path, {}, k, n}, put, function);
  } else place_parts(path, put, function, parts(t), parts(s));
}

/// What is wrong with a tree of shardings S for a tree T.
enum class BadPlaces : std::uint8_t { none, kind, count };
template <class T, class S> consteval BadPlaces bad_places();
template <class... T, class... S>
consteval BadPlaces bad_parts(std::type_identity<std::tuple<T&...>>,
                              std::type_identity<std::tuple<const S&...>>) {
  constexpr std::size_t given = sizeof...(S);
  return []<std::size_t... K>(std::index_sequence<K...>) {
    if constexpr (given > sizeof...(T) || !((K < given || Static<std::remove_const_t<T>>)&&...))
      return BadPlaces::count;
    else {
      using All = std::tuple<T...>;
      BadPlaces r = BadPlaces::none;
      [&]<std::size_t... J>(std::index_sequence<J...>) {
        ((r = r == BadPlaces::none ? bad_places<std::tuple_element_t<J, All>, S>() : r), ...);
      }
      (std::index_sequence_for<S...>());
      return r;
    }
  }
  (std::index_sequence_for<T...>());
}
template <class T, class S> consteval BadPlaces bad_places() {
  if constexpr (OnePlace<S> || std::same_as<S, none_t>) return BadPlaces::none;
  else if constexpr (is_optional<T>) return bad_places<typename T::value_type, S>();
  else if constexpr (is_sequence<S> && is_sequence<T>)
    return bad_places<typename T::value_type, typename S::value_type>();
  else if constexpr ((!is_tuple<S> && !std::is_aggregate_v<S>) || is_sequence<S> || is_sequence<T> ||
                     Static<T> || Leaf<T>)
    return BadPlaces::kind;
  else
    return bad_parts(std::type_identity<decltype(parts(std::declval<T&>()))>(),
                     std::type_identity<decltype(parts(std::declval<const S&>()))>());
}
template <BadPlaces why, class T, class S> struct Places {
  static consteval bool ok() {
    constexpr bool counts = why != BadPlaces::count, kinds = why != BadPlaces::kind;
    static_assert(
        counts,
        "shardarray: the tree of shardings needs one entry for each part of the tree, or one for all of it");
    static_assert(
        kinds,
        "shardarray: give a Device, a sharding (of a mesh: NamedSharding(mesh, P(...))), or a tree of "
        "shardings: a tuple, vector or struct with an entry for each part of the tree");
    return counts && kinds;
  }
};
template <class T, class S> struct PlacesVerdict {
  static constexpr BadPlaces why = bad_places<T, S>();
  static constexpr bool good = why == BadPlaces::none;
  using Complaint = Places<why, T, S>;
};

[[noreturn]] SHARDARRAY_API void throw_no_array_at(const std::string& path, const char* function);
/// Places the arrays of `t` at these paths.
template <class T>
void place_named(T& t, const std::map<std::string, Sharding>& to, PlaceRef put, const char* function) {
  std::set<std::string> found;
  each_leaf(t, [&](Array& a, const Path& p) {
    if (!a.has_value()) return;
    const auto at = to.find(p.text());
    if (at == to.end()) return;
    a = put(a, at->second, p);
    found.insert(at->first);
  });
  for (const auto& [path, sharding] : to)
    if (!found.contains(path)) throw_no_array_at(path, function);
}

using PutLeaf = Array (*)(const Array&, const Sharding&, const std::string& path, Where);
/// The tree with each array placed by `to`: a tree of places, or a map from paths to places.
template <class T, class S> T put_tree(T tree, const S& to, PutLeaf leaf, const char* function, Where w) {
  const Site site(w, function);
  const auto put = [&](const Array& a, const Sharding& s, const Path& p) { return leaf(a, s, p.text(), w); };
  if constexpr (std::same_as<S, std::map<std::string, Sharding>>) {
    if constexpr (Judged<TreeVerdict<T>>::ok()) place_named(tree, to, put, function);
  } else if constexpr (Judged<TreeVerdict<T>, PlacesVerdict<T, S>>::ok()) {
    place(tree, to, Path{}, put, function);
  }
  return tree;
}

/// Implements eval().
struct eval_fn {
  template <class... T> static void call(Where w, const T&... trees) {
    const Site site(w);
    if constexpr (Judged<TreeVerdict<T>...>::ok()) {
      std::vector<Array> leaves;
      auto collect = [&](const Array& a, const Path&) {
        if (a.has_value()) leaves.push_back(a);
      };
      (each_leaf(trees, collect), ...);
      core::eval_leaves(leaves);
    }
  }
};

}  // namespace detail

/// Inside jit, constrains the sharding of every array of the tree; nothing moves unless a consumer reads it so. Outside, returns the tree
/// so placed (without evaluating). `to` is a Device, a sharding, or a tree of them: `std::tuple(sharding, none)` for a tuple of two.
/// Statics pass through; shapes, dtypes and values are kept; absent arrays stay absent. If an array was bound to other devices
/// (committed, or on several), its gradient returns to those; otherwise it stays where the value went. Throws ShardingError, with the
/// path, for an array whose rank does not fit, DeviceError for a device that does not exist, TreeError for a list of places whose length
/// differs from the tree's.
template <class T, class S> [[nodiscard]] T filter_shard(T tree, const S& to, Where w = Where::here()) {
  return detail::put_tree(std::move(tree), to, core::shard_leaf, "filter_shard", w);
}
/// The same for the arrays at these paths, as given by tree_paths() (`layers[1].weight`); others are unchanged. Throws TreeError for a
/// path where the tree has no array.
template <class T>
[[nodiscard]] T filter_shard(T tree, const std::map<std::string, Sharding>& to, Where w = Where::here()) {
  return detail::put_tree(std::move(tree), to, core::shard_leaf, "filter_shard", w);
}
/// JAX's names for filter_shard().
template <class T, class S>
[[nodiscard]] T with_sharding_constraint(T tree, const S& to, Where w = Where::here()) {
  return detail::put_tree(std::move(tree), to, core::shard_leaf, "with_sharding_constraint", w);
}
template <class T, class S> [[nodiscard]] T reshard(T tree, const S& to, Where w = Where::here()) {
  return detail::put_tree(std::move(tree), to, core::shard_leaf, "reshard", w);
}
/// Commits the tree to a Device, a sharding, or a tree of them; evaluates. Inside jit and an open gradient, the same as filter_shard().
/// Gradients and errors: as filter_shard().
template <class T, class S> [[nodiscard]] T device_put(T tree, const S& to, Where w = Where::here()) {
  return detail::put_tree(std::move(tree), to, core::device_put_leaf, "device_put", w);
}
/// The same for the arrays at these paths, as in filter_shard().
template <class T>
[[nodiscard]] T device_put(T tree, const std::map<std::string, Sharding>& to, Where w = Where::here()) {
  return detail::put_tree(std::move(tree), to, core::device_put_leaf, "device_put", w);
}

/// `eval(a, model)` computes all arrays of the trees together, in one program, without waiting for the values. Throws TraceError inside a
/// trace, and what the computation throws (OutOfMemory, DeviceError, ShardingError of policy strict).
inline constexpr detail::PlacedFunction<detail::eval_fn> eval{};
/// eval(), then waits for the values. Returns the tree. Throws what eval() throws, and any failure of the computation.
template <class T> const T& block_until_ready(const T& tree, Where w = Where::here()) {
  const Site site(w, "block_until_ready");
  eval(tree);
  if constexpr (detail::TreeCheck<T>::ok())
    detail::each_leaf(tree, [](const Array& a, const Path&) {
      if (a.has_value()) a.block_until_ready();
    });
  return tree;
}

/// Returns model + updates, leaf by leaf; a leaf without an update is unchanged, an update without a leaf is ignored. Updates are
/// broadcast to their leaves; dtypes are promoted as by add. Throws TreeError if sizes or keys differ, ShapeError, with the path, if an
/// update would change the shape of its leaf.
template <Tree T>
[[nodiscard]] T apply_updates(T model, const std::type_identity_t<T>& updates, Where w = Where::here()) {
  const Site site(w, "apply_updates");
  detail::Structure s = detail::structure(model, false);
  const std::vector<Array> u = detail::slots_like(s, updates, 1, "apply_updates");
  std::size_t i = 0;
  detail::each_leaf(model, [&](Array& a, const Path& p) {
    const Array& update = u[i++];
    if (!a.has_value() || !update.has_value()) return;
    detail::check_leaf_shape(a, update, "update", true, p, "apply_updates");
    a = Operand(a, w) + Operand(update, w);
  });
  return model;
}
/// @cond
template <class T>
requires(!Tree<T>) [[nodiscard]] T
    apply_updates(T model, const std::type_identity_t<T>&, Where = Where::here()) {  // says why T is none
  (void)detail::TreeCheck<T>::ok();
  return model;
}
/// @endcond

}  // namespace shardarray
