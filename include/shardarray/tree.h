// Trees: plain structs, containers and tuples of arrays. No base class, no registration.
//
// An Array is a leaf. vector, array, tuple, pair, optional, map<string, T> and aggregates are traversed, with field names. Numbers,
// enums, strings, shardings, function pointers and empty function objects are static: part of the structure. Other types do not compile,
// and the message says why. An absent array (`Array()`) is not a leaf, like None in JAX. An example value serves as tree definition.
//
// A class that is not an aggregate lists its parts: `friend auto tree_fields(Me& m) { return std::tie(m.a, m.b); }`.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <complex>
#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "shardarray/array.h"
#include "shardarray/detail/bind_fields.h"
#include "shardarray/detail/containers.h"
#include "shardarray/detail/enumerators.h"
#include "shardarray/detail/path.h"
#include "shardarray/detail/placed_call.h"
#include "shardarray/detail/verdict.h"

namespace shardarray {

/// A complex number is two static values.
template <std::floating_point T> [[nodiscard]] auto tree_fields(std::complex<T>& z) {
  T(&parts)[2] = reinterpret_cast<T(&)[2]>(z);
  return std::tie(parts[0], parts[1]);
}

namespace detail {

template <class T>
concept Hooked = requires(T& t) {
  tree_fields(t);
};
/// Static values identified by their text.
template <class T>
concept Spelled = std::same_as<T, std::string> || std::same_as<T, std::vector<bool>> ||
    std::same_as<T, Shape> || std::same_as<T, Device> || std::same_as<T, Mesh> ||
    std::same_as<T, PartitionSpec> || std::same_as<T, Sharding> || std::same_as<T, NamedSharding> ||
    std::same_as<T, SingleDeviceSharding> || std::same_as<T, PositionalSharding>;
template <class T>
concept FunctionPointer = std::is_pointer_v<T> && std::is_function_v<std::remove_pointer_t<T>>;
template <class T>
concept Static = (std::is_arithmetic_v<T> && sizeof(T) <= 8) || std::is_enum_v<T> ||
                 FunctionPointer<T> || Spelled<T> || (std::is_empty_v<T> && !Hooked<T>);

/// Why T is not a tree; the messages are in IsTree.
enum class NoTree { none, function, reference, uncopyable, hidden, base, many, key, unknown, c_array, wide };

template <class T> consteval NoTree why_no_tree();
template <class... T> consteval NoTree first_reason() {
  NoTree r = NoTree::none;
  ((r = r == NoTree::none ? why_no_tree<T>() : r), ...);
  return r;
}
template <class T> consteval NoTree why_no_aggregate() {
  if constexpr (HasBase<T>) return NoTree::base;
  else if constexpr (field_count<T> == 0) return NoTree::reference;
  else if constexpr (has_c_array<T>()) return NoTree::c_array;
  else if constexpr (field_count<T> > max_fields) return NoTree::many;
  else {
    auto reason = []<class... F>(F&...) { return std::integral_constant<NoTree, first_reason<F...>()>{}; };
    return decltype(with_fields(std::declval<T&>(), reason))::value;
  }
}
template <class T> consteval NoTree why_no_tree() {
  if constexpr (Leaf<T> || Static<std::remove_const_t<T>> || Hooked<T>) return NoTree::none;
  else if constexpr (std::is_const_v<T>) return NoTree::reference;
  else if constexpr (std::is_arithmetic_v<T>) return NoTree::wide;
  else if constexpr (is_sequence<T> || is_optional<T>) return why_no_tree<typename T::value_type>();
  else if constexpr (is_map<T>)
    return std::same_as<typename T::key_type, std::string> ? why_no_tree<typename T::mapped_type>()
                                                           : NoTree::key;
  else if constexpr (is_tuple<T>) return []<std::size_t... I>(std::index_sequence<I...>) {
      return first_reason<std::tuple_element_t<I, T>...>();
    }
  (std::make_index_sequence<std::tuple_size_v<T>>{});
  else if constexpr (is_std_function<T>) return NoTree::function;
  else if constexpr (std::is_array_v<T>) return NoTree::c_array;
  else if constexpr (std::is_reference_v<T> || std::is_pointer_v<T>) return NoTree::reference;
  else if constexpr (!std::is_copy_constructible_v<T>) return NoTree::uncopyable;
  else if constexpr (requires(T & p) {
                       typename T::element_type;
                       p.get();
                       p.reset();
                     }) return NoTree::reference;
  else if constexpr (requires { &T::operator(); } && !std::is_aggregate_v<T>) return NoTree::function;
  else if constexpr (!std::is_aggregate_v<T>) return std::is_class_v<T> ? NoTree::hidden : NoTree::unknown;
  else return why_no_aggregate<T>(); }
template <class T> inline constexpr NoTree no_tree_v = why_no_tree<T>();

}  // namespace detail

/// A type that transforms can traverse.
template <class T>
concept Tree = detail::no_tree_v<std::remove_cvref_t<T>>
== detail::NoTree::none;

namespace detail {

/// The name of a field, for compiler notes.
struct FieldName {
  consteval explicit FieldName(std::string_view name) {
    for (std::size_t k = 0; k < name.size() && k + 1 < sizeof text; k++) text[k] = name[k];
  }
  char text[64] = {};
};
/// Structs that are traversed field by field.
template <class T>
concept Plain = std::is_aggregate_v<T> && std::is_class_v<T> && !Static<T> && !Hooked<T> && !is_sequence<T> &&
                !HasBase<T> && field_count<T> > 0 && field_count<T> <= max_fields && !has_c_array<T>();
template <class... F> struct FieldTypes {
  static constexpr NoTree reasons[] = {why_no_tree<F>()...};
  static constexpr std::size_t first_bad = static_cast<std::size_t>(
      std::find_if(reasons, std::end(reasons), [](NoTree r) { return r != NoTree::none; }) - reasons);
  using Bad = std::tuple_element_t<first_bad, std::tuple<F...>>;
};
/// (A lambda in its place crashes clang 14 if this header is precompiled.)
struct AsFieldTypes {
  template <class... F> [[nodiscard]] FieldTypes<F...> operator()(F&...) const { return {}; }
};
template <class T> using fields_of = decltype(with_fields(std::declval<T&>(), AsFieldTypes()));
/// Says why `Part` is not a tree; it may be the field `name` of `Owner`.
template <class Part, class Owner, FieldName name> struct IsTree {
  static consteval bool ok() {
    constexpr NoTree why = no_tree_v<Part>;
    static_assert(
        why != NoTree::function,
        "shardarray tree: a std::function or a lambda with captures has no identity to "
        "cache by; use a template parameter (nn::MLP<nn::Function<my_fn>>) or a plain function pointer");
    static_assert(why != NoTree::reference,
                  "shardarray tree: references, data pointers and constants cannot be fields of a "
                  "tree; hold the Array by value (handles are cheap to copy)");
    static_assert(why != NoTree::uncopyable,
                  "shardarray tree: every part must be copyable (a traced call works on a copy "
                  "of its arguments); Array handles are cheap to copy");
    static_assert(why != NoTree::hidden,
                  "shardarray tree: this class has constructors or private members; make it an "
                  "aggregate with a static init(), or give it `friend auto tree_fields(T& t) { return "
                  "std::tie(t.a, t.b); }`");
    static_assert(why != NoTree::base,
                  "shardarray tree: a struct with base classes cannot be taken apart; hold the base as "
                  "a member, or give it tree_fields()");
    static_assert(why != NoTree::many,
                  "shardarray tree: more than 40 fields in one struct; group them, or give it "
                  "tree_fields()");
    static_assert(why != NoTree::key,
                  "shardarray tree: a std::map in a tree needs std::string keys (they become names in "
                  "messages and checkpoints)");
    static_assert(why != NoTree::unknown,
                  "shardarray tree: this type is neither an Array, a container of trees, a struct "
                  "of trees, nor a static value");
    static_assert(
        why != NoTree::c_array,
        "shardarray tree: a C array cannot be a field of a tree; use std::array, for text std::string");
    static_assert(why != NoTree::wide,
                  "shardarray tree: a number of more than 64 bits cannot be a static value; convert it "
                  "to double or std::int64_t");
    return why == NoTree::none;
  }
};
template <class T, class Owner, FieldName name> auto bad_part() {
  if constexpr (no_tree_v<T> != NoTree::none && Plain<T>) {
    using Fields = fields_of<T>;
    return bad_part<typename Fields::Bad, T, FieldName(field_names<T>[Fields::first_bad])>();
  } else return std::type_identity<IsTree<T, Owner, name>>();
}

/// Whether T is a tree. The complaint names the innermost field that is not.
template <class T> struct TreeVerdict {
  static constexpr bool good = no_tree_v<T> == NoTree::none;
  using Complaint = typename decltype(bad_part<T, T, FieldName("")>())::type;
};
/// Every wrapper checks this first and continues inside `if constexpr`, so that the message is the only error.
template <class T> using TreeCheck = Judged<TreeVerdict<T>>;

/// Accepts any type: one that is not a tree causes an error that says why, and no others.
template <class T>
concept JudgedTree = TreeCheck<T>::ok() || true;

/// What a walk reports besides leaves. Types are omitted: they follow from the type of the tree.
struct StaticValue {
  enum class Kind : std::uint8_t { size, key, integer, real, address, text };
  Kind kind = Kind::size;
  std::uint64_t word = 0;      ///< size of a container or presence of an optional; the value, or its bits
  std::string_view text = {};  ///< of a map key, or a string; its word is 0 or the string's number
  /// For a number, an enum or a std::string: what it holds, for reading trees from files.
  enum class Held : std::uint8_t { nothing, boolean, signed_integer, unsigned_integer, real, string };
  Held held = Held::nothing;
  std::uint8_t bytes = 0;  ///< of a number
  std::uint8_t values =
      0;  ///< for an enum of one byte with the consecutive values 0, 1, ..: how many of them there are
  const void* object = nullptr;  ///< its location
};
/// For messages.
[[nodiscard]] SHARDARRAY_API std::string to_string(const StaticValue& v);
using LeafRef = FunctionRef<void(Array&, const Path&)>;
using StaticRef = FunctionRef<void(const StaticValue&, const Path&)>;

[[nodiscard]] SHARDARRAY_API std::string spelling(const std::vector<bool>& v);
[[nodiscard]] SHARDARRAY_API std::string spelling(const Shape& s);
[[nodiscard]] SHARDARRAY_API std::string spelling(const Device& d);
[[nodiscard]] SHARDARRAY_API std::string spelling(const PartitionSpec& p);
/// A spelling that lives as long as the object it spells. Equal ones share a number while they live; no number is reused.
struct NumberedSpelling {
  std::uint64_t number;
  std::string_view text;
};
SHARDARRAY_API NumberedSpelling spelling(const Mesh& m);
SHARDARRAY_API NumberedSpelling spelling(const Sharding& s);

template <class T> constexpr StaticValue::Held held_integer() {
  using Held = StaticValue::Held;
  if constexpr (std::is_enum_v<T>) return held_integer<std::underlying_type_t<T>>();
  else if constexpr (std::same_as<T, bool>) return Held::boolean;
  else return std::is_signed_v<T> ? Held::signed_integer : Held::unsigned_integer;
}
template <class T> void report(const T& v, const Path& path, StaticRef value) {
  using Kind = StaticValue::Kind;
  using Held = StaticValue::Held;
  if constexpr (std::same_as<T, std::string>) value({Kind::text, 0, v, Held::string, 0, 0, &v}, path);
  else if constexpr (Spelled<T>) {
    const auto spelled = spelling(v);
    if constexpr (std::same_as<decltype(spelled), const NumberedSpelling>)
      value({Kind::text, spelled.number, spelled.text}, path);
    else value({Kind::text, 0, spelled}, path);
  } else if constexpr (std::is_empty_v<T>) return;
  else if constexpr (std::is_pointer_v<T>) value({Kind::address, reinterpret_cast<std::uintptr_t>(v)}, path);
  else if constexpr (std::is_floating_point_v<T>)
    value({Kind::real, std::bit_cast<std::uint64_t>(static_cast<double>(v)), {}, Held::real, sizeof v, 0, &v},
          path);
  else if constexpr (std::is_enum_v<T>) {
    constexpr std::uint8_t values = enumerators<T>();
    value({Kind::integer, static_cast<std::uint64_t>(v), {}, held_integer<T>(), sizeof v, values, &v}, path);
  } else value({Kind::integer, static_cast<std::uint64_t>(v), {}, held_integer<T>(), sizeof v, 0, &v}, path);
}

template <class T> void walk(T& t, const Path& path, LeafRef leaf, StaticRef value);
template <class... F>
void walk_fields(const std::string_view* names, const Path& path, LeafRef leaf, StaticRef value, F&... f) {
  constexpr std::uint32_t trees = ((Static<std::remove_const_t<F>> ? 0 : 1) + ... + 0);
  [[maybe_unused]] std::uint32_t i = 0, tree = 0;
  auto next = [&](bool is_static) {
    const std::uint32_t k = i++;
    return Path{&path, names ? names[k] : std::string_view(), k, sizeof...(F), is_static ? tree : tree++,
                trees};
  };
  (walk(f, next(Static<std::remove_const_t<F>>), leaf, value), ...);
}
/// The only recursion over structure. Reports arrays and statics in declaration order.
template <class T> void walk(T& t, const Path& path, LeafRef leaf, StaticRef value) {
  using U = std::remove_const_t<T>;
  using Kind = StaticValue::Kind;
  [[maybe_unused]] std::uint32_t i = 0;
  if constexpr (Leaf<U>) leaf(t, path);
  else if constexpr (Static<U>) report(t, path, value);
  else if constexpr (Hooked<U>)
    std::apply([&](auto&... f) { walk_fields(nullptr, path, leaf, value, f...); }, tree_fields(t));
  else if constexpr (is_sequence<U>) {
    const auto n = static_cast<std::uint32_t>(t.size());
    value({Kind::size, n}, path);
    for (auto& x : t) walk(x, Path{&path, {}, i++, n}, leaf, value);
  } else if constexpr (is_optional<U>) {
    value({Kind::size, t.has_value()}, path);
    if (t) walk(*t, path, leaf, value);
  } else if constexpr (is_map<U>) {
    const auto n = static_cast<std::uint32_t>(t.size());
    value({Kind::size, n}, path);
    for (auto& [key, x] : t) {
      const Path p{&path, key, i++, n};
      value({Kind::key, 0, key}, p);
      walk(x, p, leaf, value);
    }
  } else if constexpr (is_tuple<U>)
    std::apply([&](auto&... f) { walk_fields(nullptr, path, leaf, value, f...); }, t);
  else if constexpr (Plain<U>)
    with_fields(t, [&](auto&... f) { walk_fields(field_names<U>.data(), path, leaf, value, f...); });
}
inline constexpr auto ignore = [](const StaticValue&, const Path&) {};

/// Calls leaf(Array&, path) for every array, including absent ones.
template <class T, class L> void each_leaf(T& t, const L& leaf, const Path& path = {}) {
  walk(t, path, leaf, ignore);
}
/// The same for reading: leaf(const Array&, path).
template <class T, class L> void each_leaf(const T& t, const L& leaf, const Path& path = {}) {
  walk(const_cast<T&>(t), path, leaf, ignore);
}
/// All arrays including absent ones: one per slot.
template <class T> [[nodiscard]] std::vector<Array> slots(const T& t) {
  std::vector<Array> r;
  each_leaf(t, [&](const Array& a, const Path&) { r.push_back(a); });
  return r;
}
/// The inverse of slots(). Arrays of a non-const span are moved from.
template <class T, class Arrays> void set_slots(T& t, const Arrays& next) {
  std::size_t i = 0;
  each_leaf(t, [&](Array& a, const Path&) { a = std::move(next[i++]); });
}

template <class> using array_of = const Array&;

/// Sizes, keys and (optionally) static values of a tree, in traversal order.
class SHARDARRAY_API Structure {
 public:
  explicit Structure(bool with_values) : with_values_(with_values) {}
  void add(const StaticValue& v);
  /// False if the next entry of another tree differs.
  bool next_is(const StaticValue& v);
  bool at_end() const { return at_ == entries_.size(); }
  void rewind() { at_ = 0; }
  /// Throws TreeError: tree `k` has another entry at `path` than the first tree.
  void demand(const StaticValue& v, const Path& path, std::size_t k, const char* function);

 private:
  bool counts(const StaticValue& v) const;
  struct Entry {
    std::uint64_t word;
    std::string text;
  };
  bool with_values_;
  std::size_t at_ = 0;
  std::vector<Entry> entries_;
};
[[noreturn]] SHARDARRAY_API void throw_missing_leaf(const Path& path, std::size_t k, const char* function);
[[noreturn]] SHARDARRAY_API void throw_leaf_count(std::size_t given, std::size_t wanted,
                                                  const char* function);
/// Throws ShapeError, with the path, unless `partner`, called `word` in the message, can be combined with `leaf` without changing its
/// shape: its shape is equal or, with `broadcast`, broadcastable to it.
SHARDARRAY_API void check_leaf_shape(const Array& leaf, const Array& partner, const char* word,
                                     bool broadcast, const Path& path, const char* function);
/// Same shape, dtype and values.
[[nodiscard]] SHARDARRAY_API bool same_array(const Array& a, const Array& b);

/// The slots of `u`, tree number `k`. Throws TreeError unless its structure is `s`.
template <class T>
std::vector<Array> slots_like(Structure& s, const T& u, std::size_t k, const char* function) {
  std::vector<Array> r;
  s.rewind();
  walk(
      const_cast<T&>(u), Path{}, [&](Array& a, const Path&) { r.push_back(a); },
      [&](const StaticValue& v, const Path& p) { s.demand(v, p, k, function); });
  return r;
}
template <class T> Structure structure(const T& t, bool with_values) {
  Structure s(with_values);
  walk(
      const_cast<T&>(t), Path{}, [](Array&, const Path&) {},
      [&](const StaticValue& v, const Path&) { s.add(v); });
  return s;
}

}  // namespace detail

/// The present arrays, depth first, in declaration order.
template <class T> [[nodiscard]] std::vector<Array> tree_leaves(const T& t) {
  std::vector<Array> r;
  if constexpr (detail::TreeCheck<T>::ok())
    detail::each_leaf(t, [&](const Array& a, const Path&) {
      if (a.has_value()) r.push_back(a);
    });
  return r;
}
/// The path of each leaf of tree_leaves(): `layers[0].weight`; "" for an Array itself.
template <class T> [[nodiscard]] std::vector<std::string> tree_paths(const T& t) {
  std::vector<std::string> r;
  if constexpr (detail::TreeCheck<T>::ok())
    detail::each_leaf(t, [&](const Array& a, const Path& p) {
      if (a.has_value()) r.push_back(p.text());
    });
  return r;
}
/// `like` with its present leaves replaced in order. Throws TreeError unless there are as many leaves.
template <Tree T>
[[nodiscard]] T with_leaves(T like, std::span<const Array> leaves, Where w = Where::here()) {
  const Site site(w);
  std::size_t i = 0;
  detail::each_leaf(like, [&](Array& a, const Path&) {
    if (a.has_value() && i++ < leaves.size()) a = leaves[i - 1];
  });
  if (i != leaves.size()) detail::throw_leaf_count(leaves.size(), i, "with_leaves");
  return like;
}
namespace detail {
/// Implements tree_map() and combine().
struct tree_map_fn {
  template <class F, class T, class... More> static T call(Where w, F f, T t, const More&... more) {
    const UserSite user(w);
    constexpr bool same = has_failed<std::tuple<T, More...>> || (std::is_same_v<T, More> && ...);
    static_assert(same, "tree_map: all trees must have the same type");
    if constexpr (same && Judged<TreeVerdict<T>, TreeVerdict<More>...>::ok()) {
      constexpr bool takes = std::is_invocable_r_v<Array, F&, const Array&, array_of<More>...>;
      static_assert(takes, "tree_map: the function must take one Array of each tree and return an Array");
      if constexpr (takes && sizeof...(More) == 0)
        each_leaf(t, [&](Array& a, const Path& p) {
          if (a.has_value()) a = at_path(p, [&] { return f(std::as_const(a)); });
        });
      else if constexpr (takes) {
        Structure s = structure(t, false);
        std::size_t k = 1, i = 0;
        const std::array<std::vector<Array>, sizeof...(More)> others{slots_like(s, more, k++, "tree_map")...};
        each_leaf(t, [&](Array& a, const Path& p) {
          const std::size_t at = i++;
          if (!a.has_value()) return;
          for (std::size_t j = 0; j < others.size(); j++)
            if (!others[j][at].has_value()) throw_missing_leaf(p, j + 1, "tree_map");
          const auto fs = [&]<std::size_t... J>(std::index_sequence<J...>) {
            return f(std::as_const(a), others[J][at]...);
          };
          a = at_path(p, [&]() -> Array { return fs(std::index_sequence_for<More...>{}); });
        });
      }
    }
    return t;
  }
};
struct combine_fn {
  template <JudgedTree T, std::same_as<T>... More> static T call(Where w, T t, const More&... more) {
    const Site site(w);
    Structure s = structure(t, false);
    std::size_t k = 1;
    auto fill = [&](const T& u) {
      const std::vector<Array> others = slots_like(s, u, k++, "combine");
      std::size_t i = 0;
      each_leaf(t, [&](Array& a, const Path&) {
        const Array& other = others[i++];
        if (!a.has_value()) a = other;
      });
    };
    (fill(more), ...);
    return t;
  }
};
}  // namespace detail
/// `tree_map(f, t, others...)`: applies f(leaf of t, corresponding leaves of the others) everywhere; statics and absent leaves are those
/// of `t`. Throws TreeError, with the path, if another tree has other sizes or keys, or lacks the leaf; what f throws, with the path.
inline constexpr detail::PlacedFunction<detail::tree_map_fn> tree_map{};
/// Whether structure, statics, shapes, dtypes and values are equal (NaN equals nothing). Reads the arrays.
template <class T> [[nodiscard]] bool tree_equal(const T& a, const T& b, Where w = Where::here()) {
  const Site site(w, "tree_equal");
  if constexpr (detail::TreeCheck<T>::ok()) {
    detail::Structure s = detail::structure(a, true);
    std::vector<Array> of_b;
    bool same = true;
    detail::walk(
        const_cast<T&>(b), Path{}, [&](Array& x, const Path&) { of_b.push_back(x); },
        [&](const detail::StaticValue& v, const Path&) { same = same && s.next_is(v); });
    const std::vector<Array> of_a = detail::slots(a);
    same = same && s.at_end() && of_a.size() == of_b.size();
    for (std::size_t k = 0; same && k < of_a.size(); k++) same = detail::same_array(of_a[k], of_b[k]);
    return same;
  }
  return false;
}
/// A copy of `tree` with the part referred to by `part_of` replaced or, given a function, transformed:
/// `tree_at([](auto& m) -> auto& { return m.layers[0].weight; }, model, new_weight)`. Several parts: std::tie and std::tuple.
template <class W, Tree T, class R> [[nodiscard]] T tree_at(const W& part_of, T tree, const R& replacement) {
  using Part = std::invoke_result_t<const W&, T&>;
  constexpr bool refers = std::is_lvalue_reference_v<Part> || detail::is_tuple<Part>;
  static_assert(refers,
                "tree_at: the first argument must return a reference into its argument: [](auto& t) -> auto& "
                "{ return t.part; }");
  if constexpr (refers) {
    decltype(auto) part = part_of(tree);
    if constexpr (std::is_assignable_v<Part, const R&>) part = replacement;
    else part = replacement(std::as_const(part));
  }
  return tree;
}

/// `combine(t, others...)`: takes the first present array at every position. Throws TreeError, with the path, if sizes or keys differ.
inline constexpr detail::PlacedFunction<detail::combine_fn> combine{};

}  // namespace shardarray
