// Sort keys: unsigned numbers that sort like the values, alone or with a number that moves with each.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>

#include "shardarray/dtype.h"

namespace shardarray {

/// A key, and a number that moves with it.
template <class Key> struct Keyed { Key key, rest; };
template <class Key> Key key_of(const Keyed<Key>& e) { return e.key; }
template <class Bits> Bits key_of(Bits code) { return code; }

/// Keys of a dtype's numbers. Floats: all NaNs share the last key, and both zeros share one.
template <class Bits> class Codes {
 public:
  explicit Codes(DType t)
      : floats_(is_floating(t)),
        turn_(is_signed_integer(t) ? sign : Bits{0}),
        infinity_(static_cast<Bits>(t == DType::float16    ? 0x7c00
                                    : t == DType::bfloat16 ? 0x7f80
                                    : t == DType::float32  ? 0x7f800000
                                                           : 0x7ff0000000000000)) {}

  /// Calls f(k, key) for the number `bits(k)`, k from 0 to n - 1. True: each of these keys belongs to a single number.
  template <class Read, class F> bool each(std::int64_t n, const Read& bits, const F& f) const {
    if (!floats_) {
      for (std::int64_t k = 0; k < n; k++) f(k, static_cast<Bits>(bits(k) ^ turn_));
      return true;
    }
    bool shared = false;
    for (std::int64_t k = 0; k < n; k++) {
      const Bits b = bits(k);
      const bool is_nan = (b & below) > infinity_, is_minus_zero = b == sign;
      shared |= is_nan | is_minus_zero;
      const auto code = static_cast<Bits>(
          b ^ (static_cast<Bits>(Bits{0} - (b >> last)) | sign));  // signs are random: branch-free
      f(k, is_nan ? std::numeric_limits<Bits>::max() : is_minus_zero ? sign : code);
    }
    return !shared;
  }
  /// The number of a key that belongs to only one.
  Bits number(Bits key) const {
    return static_cast<Bits>(key ^ (floats_ ? static_cast<Bits>((key >> last) - Bits{1}) | sign : turn_));
  }

 private:
  static constexpr int last = std::numeric_limits<Bits>::digits - 1;
  static constexpr Bits below = std::numeric_limits<Bits>::max() >> 1, sign = below + 1;
  bool floats_;
  Bits turn_, infinity_;
};

/// Shorter lines are sorted by comparison: the 256 counters of a byte would not pay.
template <class Key> constexpr std::int64_t short_line = 16 * sizeof(Key);

/// LSD radix sort by digits of so many bits: each pass keeps the order of the previous one (Knuth, The Art of Computer Programming, volume
/// 3, 5.2.5). Digits shared by all keys are skipped. The result is in `entries` or `spare`.
template <int bits, class Count, class Entry>
Entry* sort_by_digits(Entry* entries, Entry* spare, std::int64_t length) {
  using Key = decltype(key_of(*entries));
  constexpr std::size_t values = std::size_t{1} << bits, digits = (8 * sizeof(Key) + bits - 1) / bits;
  const auto digit = [](const Entry& e, std::size_t d) {
    return static_cast<std::size_t>(key_of(e) >> (bits * d)) & (values - 1);
  };
  std::array<std::array<Count, values>, digits> counts{};
  for (std::int64_t i = 0; i < length; i++)
    for (std::size_t d = 0; d < digits; d++) counts[d][digit(entries[i], d)]++;
  for (std::size_t d = 0; d < digits; d++) {
    auto& places = counts[d];
    if (places[digit(entries[0], d)] == static_cast<Count>(length)) continue;
    Count before = 0;
    for (Count& n : places) before += std::exchange(n, before);
    for (std::int64_t i = 0; i < length; i++) spare[places[digit(entries[i], d)]++] = entries[i];
    std::swap(entries, spare);
  }
  return entries;
}

/// The result is in `entries` or `spare`; lines shorter than short_line need no spare. Stable; such lines only if `rest` ascends among
/// equal keys. Count: holds a line's length.
template <class Count, class Entry> Entry* sort_entries(Entry* entries, Entry* spare, std::int64_t length) {
  using Key = decltype(key_of(*entries));
  // Wide digits mean fewer passes. Clearing their counters must pay, and the places that a pass writes to must stay in cache.
  constexpr int wide_digit = 11;
  constexpr std::int64_t least_wide = 4096, most_wide = (2 << 20) / sizeof(Entry);
  if (length < short_line<Key>) {
    if constexpr (std::is_same_v<Key, Entry>) {
      std::sort(entries, entries + length);
    } else {
      std::sort(entries, entries + length, [](const Entry& a, const Entry& b) {
        return std::tie(a.key, a.rest) < std::tie(b.key, b.rest);
      });
    }
    return entries;
  }
  if constexpr (sizeof(Key) > 2)
    if (length >= least_wide && length <= most_wide)
      return sort_by_digits<wide_digit, Count>(entries, spare, length);
  return sort_by_digits<8, Count>(entries, spare, length);
}

}  // namespace shardarray
