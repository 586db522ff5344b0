#include "lib/tables/csv_numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "ops/record.h"

namespace shardarray::data {

namespace {

// A number that from_chars finds out of range: the power of ten of its first digit tells on which side.
double beyond(std::string_view s) {
  const std::size_t e = std::min(s.find_first_of("eE"), s.size());
  std::int64_t power = 0;
  if (e < s.size()) {
    const bool minus = s[e + 1] == '-';
    const char* const digits = s.data() + e + (minus || s[e + 1] == '+' ? 2 : 1);
    if (std::from_chars(digits, s.data() + s.size(), power).ec != std::errc()) power = std::int64_t{1} << 60;
    if (minus) power = -power;
  }
  const std::size_t point = std::min(s.find('.'), e), first = s.find_first_of("123456789");
  power += static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first);
  const double magnitude = power > 0 ? std::numeric_limits<double>::infinity() : 0;
  return s[0] == '-' ? -magnitude : magnitude;
}

template <class T> bool parse_whole(std::string_view s, T& v) {
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
  return error == std::errc() && end == s.data() + s.size();
}
template <class T> bool parse_float(std::string_view s, T& v) {
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
  if (error == std::errc::result_out_of_range) v = static_cast<T>(beyond(s));
  else if (error != std::errc()) return false;
  return end == s.data() + s.size();
}

bool parse_bool(std::string_view s, std::byte* to) {
  const auto is = [&](std::string_view word) {
    return std::equal(s.begin(), s.end(), word.begin(), word.end(),
                      [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + ('a' - 'A') : a) == b; });
  };
  const bool yes = s == "1" || is("true");
  *to = std::byte{yes};
  return yes || s == "0" || is("false");
}

template <class T> bool put_whole(std::string_view s, std::byte* to) {
  T v = 0;
  const bool is_number = parse_whole(s, v);
  std::memcpy(to, &v, sizeof v);
  return is_number;
}

template <class T> T element(const std::byte* from) {
  T v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
template <class T> void append(std::string& to, const std::byte* from) {
  char text[64];
  to.append(text, std::to_chars(text, text + sizeof text, element<T>(from)).ptr);
}

}  // namespace

bool parse_number(std::string_view s, DType t, std::byte* to) {
  if (s.size() > 1 && s[0] == '+' && s[1] != '-' && s[1] != '+') s.remove_prefix(1);
  switch (t) {
    case DType::bool_: return parse_bool(s, to);
    case DType::int8: return put_whole<std::int8_t>(s, to);
    case DType::int16: return put_whole<std::int16_t>(s, to);
    case DType::int32: return put_whole<std::int32_t>(s, to);
    case DType::int64: return put_whole<std::int64_t>(s, to);
    case DType::uint8: return put_whole<std::uint8_t>(s, to);
    case DType::uint16: return put_whole<std::uint16_t>(s, to);
    case DType::uint32: return put_whole<std::uint32_t>(s, to);
    case DType::uint64: return put_whole<std::uint64_t>(s, to);
    case DType::float32: {
      float v = 0;
      const bool is_number = parse_float(s, v);
      std::memcpy(to, &v, sizeof v);
      return is_number;
    }
    default: {
      double v = 0;
      const bool is_number = parse_float(s, v);
      const std::uint64_t bits = primitive::bits_of(t, v);
      std::memcpy(to, &bits, itemsize(t));
      return is_number;
    }
  }
}

bool write_nan(DType t, std::byte* to) {
  const std::uint64_t bits = is_floating(t) ? primitive::bits_of(t, std::nan("")) : 0;
  std::memcpy(to, &bits, itemsize(t));
  return is_floating(t);
}

void append_number(std::string& to, DType t, const std::byte* from) {
  switch (t) {
    case DType::bool_: to += element<bool>(from) ? '1' : '0'; break;
    case DType::int8: append<std::int8_t>(to, from); break;
    case DType::int16: append<std::int16_t>(to, from); break;
    case DType::int32: append<std::int32_t>(to, from); break;
    case DType::int64: append<std::int64_t>(to, from); break;
    case DType::uint8: append<std::uint8_t>(to, from); break;
    case DType::uint16: append<std::uint16_t>(to, from); break;
    case DType::uint32: append<std::uint32_t>(to, from); break;
    case DType::uint64: append<std::uint64_t>(to, from); break;
    case DType::float64: append<double>(to, from); break;
    default: append<float>(to, from); break;
  }
}

}  // namespace shardarray::data
