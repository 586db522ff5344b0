// A boolean option.
#pragma once
#include <concepts>
#include <type_traits>

namespace shardarray {

/// `true` or `false`. A number does not compile: in `{0, 1}` the 1 would be taken for a flag after an axis.
struct Flag {
  template <std::integral I> constexpr Flag(I v) : value(v) {
    static_assert(
        std::is_same_v<I, bool>,
        "an option that is true or false is given a number: {.axis = 0, .keepdims = true}; a list of axes "
        "is {.axis = {last, 1}}");
  }
  constexpr operator bool() const { return value; }
  bool value;
};

}  // namespace shardarray
