// The position of a leaf in a tree, and references to functions.
#pragma once
#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "shardarray/error.h"

namespace shardarray {

/// A position in a tree. It lives on the stack while the tree is walked; text is made only on demand.
struct SHARDARRAY_API Path {
  const Path* up = nullptr;    ///< null: the tree itself, or the argument `ordinal` of a call
  std::string_view name = {};  ///< of the field or key; empty: it has a position only
  std::uint32_t ordinal = 0;   ///< position among `count` siblings
  std::uint32_t count = 0;     ///< 0: the tree itself
  // The same for fields, without those that are static values.
  std::uint32_t tree_ordinal = 0;
  std::uint32_t tree_count = 0;  ///< 0: not a field
  /// `0.layers[1].weight`; empty for the tree itself.
  [[nodiscard]] std::string text() const;
};

namespace detail {

/// f(); its errors name the position.
template <class F> auto at_path(const Path& path, const F& f) try { return f(); } catch (Error& error) {
  if (const std::string text = path.text(); !text.empty()) error.add_path(text);
  throw;
}

template <class Signature> class FunctionRef;
/// A reference to a function that outlives the call it is passed to: no allocation, no copy.
template <class R, class... A> class FunctionRef<R(A...)> {
 public:
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, FunctionRef> && std::invocable<F&, A...>) FunctionRef(F&& f)
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* object, A... a) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<A>(a)...);
        }) {}
  FunctionRef(const void* object, R (*call)(void*, A...)) : object_(const_cast<void*>(object)), call_(call) {}
  R operator()(A... a) const { return call_(object_, std::forward<A>(a)...); }

 private:
  void* object_;
  R (*call_)(void*, A...);
};

}  // namespace detail
}  // namespace shardarray
