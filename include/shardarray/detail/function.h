// Function objects of one and two arrays: one class per name, so that each has its own type.
#pragma once
#include <algorithm>
#include <cstddef>

#include "shardarray/array.h"

namespace shardarray {

namespace detail {
/// A string as a template argument.
template <std::size_t size> struct SHARDARRAY_API FixedString {
  consteval FixedString(const char (&s)[size]) { std::copy_n(s, size, text); }
  char text[size] = {};
};
}  // namespace detail

/// `name(x)`, for instance `exp(x)`. `w`: the line that messages and explain() show.
template <detail::FixedString name> struct SHARDARRAY_API UnaryFunction {
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const;
};
/// `name(a, b)`, for instance `add(a, b)`.
template <detail::FixedString name> struct SHARDARRAY_API BinaryFunction {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
};

}  // namespace shardarray
