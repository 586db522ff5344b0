// Function objects of one and of two arrays: one class for each name, so that each is a type of its own.
#pragma once
#include <algorithm>
#include <cstddef>

#include "shardarray/array.h"

namespace shardarray {

namespace detail {
/// A text as a template's argument.
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
