// The number of values of an enum, from the names that the compiler prints.
#pragma once
#include <cstdint>
#include <string_view>
#include <utility>

namespace shardarray::detail {

/// How the compiler prints values of an enum: "mode::a, mode::b, (mode)2".
template <auto... v> consteval const char* printed_values() { return __PRETTY_FUNCTION__; }
/// How many values an enum of one byte has, if they are 0, 1, .. without gaps; else 0. Also 0 for wider enums: not all of their
/// numbers can be tried, and combined flags are legitimate.
template <class T> consteval std::uint8_t enumerators() {
  if constexpr (sizeof(T) != 1 || !requires { T{0}; }) return 0;
  else {
    const std::string_view text = []<std::size_t... k>(std::index_sequence<k...>) {
      return printed_values<static_cast<T>(k)...>();
    }
    (std::make_index_sequence<256>());
    std::size_t values = 0, count = 0;
    // a number without a name is printed as a cast: (mode)2
    for (std::size_t at = text.find("v = "), end = at; end != text.npos; at = end + 1, count++) {
      end = text.find(", ", at);
      const std::string_view one = text.substr(at, end == text.npos ? end : end - at);
      const std::size_t cast = one.find_last_not_of(end == text.npos ? "-0123456789}>]" : "-0123456789");
      if (one[cast] != ')' && values++ != count) return 0;
    }
    return count == 256 && values < 256 ? static_cast<std::uint8_t>(values) : std::uint8_t{0};
  }
}

}  // namespace shardarray::detail
