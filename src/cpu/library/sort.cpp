// Stable sorts of lines.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <tuple>
#include <utility>

#include "cpu/address.h"
#include "cpu/library/library_call.h"
#include "runtime/lines.h"

namespace shardarray {
namespace {

/// A number in the order of the values, and where it stands in its line.
template <class Key> struct KeyedPlace { Key key, from; };

/// Floats of any width by sign and magnitude: `bits` has `width` bits, magnitudes above `infinity` are NaN.
/// All NaN are one key, the last; both zeros are one key.
template <class Key> Key float_key(Key bits, int width, Key infinity) {
  const Key sign = Key{1} << (width - 1), magnitude = bits & (sign - 1);
  if (magnitude > infinity) return std::numeric_limits<Key>::max();
  return bits & sign ? sign - magnitude : sign + magnitude;
}

template <class Bits, class Key>
void read_keys(DType t, const char* line, std::int64_t inner, std::int64_t length, KeyedPlace<Key>* out) {
  constexpr int width = std::numeric_limits<Bits>::digits;
  const auto infinity = static_cast<Key>(t == DType::float16    ? 0x7c00
                                         : t == DType::bfloat16 ? 0x7f80
                                         : t == DType::float32  ? 0x7f800000
                                                                : 0x7ff0000000000000);
  // turns the order of signed numbers into that of unsigned ones
  const Key turn = is_signed_integer(t) ? Key{1} << (width - 1) : Key{0};
  const bool floats = is_floating(t);
  for (std::int64_t i = 0; i < length; i++) {
    const Key bits = read_number<Bits>(line + i * inner * static_cast<std::int64_t>(sizeof(Bits)));
    out[i] = {floats ? float_key(bits, width, infinity) : bits ^ turn, static_cast<Key>(i)};
  }
}
/// Elements of a line that is shorter are compared: a byte has 256 counters.
template <class Key> constexpr std::int64_t short_line = 16 * sizeof(Key);

/// By bytes, the lowest first: each pass keeps the order of the one before (Knuth, The Art of Computer Programming, volume 3,
/// 5.2.5). A byte that all keys share needs none. In `entries` or `spare`.
template <class Key>
const KeyedPlace<Key>* sort_entries(KeyedPlace<Key>* entries, KeyedPlace<Key>* spare, std::int64_t length) {
  if (length < short_line<Key>) {
    // The position makes equal keys differ: stable.
    std::sort(entries, entries + length, [](const KeyedPlace<Key>& a, const KeyedPlace<Key>& b) {
      return std::tie(a.key, a.from) < std::tie(b.key, b.from);
    });
    return entries;
  }
  constexpr std::size_t digits = sizeof(Key);
  const auto digit = [](Key key, std::size_t d) { return static_cast<std::size_t>(key >> (8 * d) & 255); };
  std::array<std::array<Key, 256>, digits> counts{};
  for (std::int64_t i = 0; i < length; i++)
    for (std::size_t d = 0; d < digits; d++) counts[d][digit(entries[i].key, d)]++;
  for (std::size_t d = 0; d < digits; d++) {
    auto& places = counts[d];
    if (places[digit(entries[0].key, d)] == static_cast<Key>(length)) continue;
    Key before = 0;
    for (Key& n : places) before += std::exchange(n, before);
    for (std::int64_t i = 0; i < length; i++) spare[places[digit(entries[i].key, d)]++] = entries[i];
    std::swap(entries, spare);
  }
  return entries;
}

/// Calls f with a value of that size.
template <class F> void with_size(std::size_t size, const F& f) {
  switch (size) {
    case 1: return f(std::uint8_t{});
    case 2: return f(std::uint16_t{});
    case 4: return f(std::uint32_t{});
    case 8: return f(std::uint64_t{});
    default: return f(std::array<std::uint64_t, 2>{});
  }
}

/// Lines of `length` elements that stand `inner` apart.
template <class Key> struct Sort {
  LibraryCall::Item item;
  std::vector<DType> types;
  std::int64_t length = 0, inner = 1;

  void operator()(void* const* bases, std::int64_t begin, std::int64_t end) const {
    const auto n = static_cast<std::size_t>(length);
    std::size_t widest = 0;
    for (DType t : types) widest = std::max(widest, itemsize(t));
    const auto entries = std::make_unique_for_overwrite<KeyedPlace<Key>[]>(n),
               spare = std::make_unique_for_overwrite<KeyedPlace<Key>[]>(length < short_line<Key> ? 0 : n);
    const auto sorted = std::make_unique_for_overwrite<char[]>(n * widest);  // outputs may lie on the inputs
    for (std::int64_t u = begin; u < end; u++) {
      const std::int64_t first = u / inner * inner * length + u % inner;
      const auto line = [&](const Ref& v, std::size_t k) {
        return address(bases, v) + first * static_cast<std::int64_t>(itemsize(types[k]));
      };
      with_size(itemsize(types[0]), [&](auto bits) {
        if constexpr (sizeof bits <= sizeof(Key))
          read_keys<decltype(bits)>(types[0], line(item.in[0], 0), inner, length, entries.get());
      });
      const KeyedPlace<Key>* const order = sort_entries(entries.get(), spare.get(), length);
      for (std::size_t k = 0; k < types.size(); k++) {
        const char* const in = line(item.in[k], k);
        char* const out = line(item.out[k], k);
        with_size(itemsize(types[k]), [&](auto value) {
          constexpr auto size = static_cast<std::int64_t>(sizeof value);
          for (std::int64_t i = 0; i < length; i++) {
            const auto from = static_cast<std::int64_t>(order[i].from);
            std::memcpy(sorted.get() + i * size, in + from * inner * size, sizeof value);
          }
          for (std::int64_t i = 0; i < length; i++)
            std::memcpy(out + i * inner * size, sorted.get() + i * size, sizeof value);
        });
      }
    }
  }
};

template <class Key> LibraryPlan plan_of(const LibraryCall& call, const LibraryCall::Item& item) {
  const auto [count, length, inner] = lines_along(item.in_shapes[0], item.params[0]);
  const auto n = static_cast<double>(length), operands = static_cast<double>(call.in_types.size());
  const double keys = length < short_line<Key> ? 5 + 3 * std::log2(n + 1) : 3 + 2.5 * sizeof(Key);
  const std::int64_t lines = length == 0 ? 0 : count;
  return {lines, static_cast<double>(lines) * n * (keys + 3 * operands),
          Sort<Key>{item, call.in_types, length, inner}};
}

}  // namespace

LibraryPlan plan_sort(const LibraryCall& call, const LibraryCall::Item& item) {
  const DType key = call.in_types[0];
  if (is_complex(key)) refuse_dtype("sort", key, "bool, integers and floats");
  const bool wide = itemsize(key) == 8 || lines_along(item.in_shapes[0], item.params[0]).length >
                                              std::numeric_limits<std::uint32_t>::max();
  return wide ? plan_of<std::uint64_t>(call, item) : plan_of<std::uint32_t>(call, item);
}

}  // namespace shardarray
