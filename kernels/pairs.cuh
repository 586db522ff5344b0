// Before and after a sort of pairs (src/cuda/pair_sort.h) of all lines of a step: makes the pairs and writes the results.
//
// The elements of all items are numbered consecutively, line by line. A pair's key is its element's, with the line number in the bits above
// it, so that sorted lines stay in place. Its value is the element's number, or, if nothing else is permuted, the element's bits.
#pragma once
#include "kernels/sort.cuh"

namespace shardarray::device {

/// Two arrays in scratch memory, in the layout the sort expects.
struct Pairs {
  std::uint64_t keys, values;         ///< scratch offsets: `key_bytes` (4 or 8) each, and std::uint32_t
  std::uint32_t key_bytes, key_bits;  ///< the element's part of a key

  SHARDARRAY_DEVICE void put(std::byte* scratch, std::int64_t at, std::uint64_t key,
                             std::uint32_t value) const {
    if (key_bytes == 4)
      reinterpret_cast<std::uint32_t*>(scratch + keys)[at] = static_cast<std::uint32_t>(key);
    else reinterpret_cast<std::uint64_t*>(scratch + keys)[at] = key;
    reinterpret_cast<std::uint32_t*>(scratch + values)[at] = value;
  }
  /// The element's part of a key.
  SHARDARRAY_DEVICE std::uint64_t key(const std::byte* scratch, std::int64_t at) const {
    const std::uint64_t all = key_bytes == 4 ? reinterpret_cast<const std::uint32_t*>(scratch + keys)[at]
                                             : reinterpret_cast<const std::uint64_t*>(scratch + keys)[at];
    return all & ~std::uint64_t{0} >> (64 - key_bits);
  }
  SHARDARRAY_DEVICE std::uint32_t value(const std::byte* scratch, std::int64_t at) const {
    return reinterpret_cast<const std::uint32_t*>(scratch + values)[at];
  }
  SHARDARRAY_DEVICE std::uint64_t with_line(std::uint64_t key, std::int64_t line) const {
    return key_bits < 64 ? key | static_cast<std::uint64_t>(line) << key_bits : key;
  }
};

struct PairTable {
  List<SortItem> items;
  Pairs pairs;
  DType key;
  bool are_elements;  ///< values are the elements' bits
  std::uint8_t unused[6];
};

SHARDARRAY_DEVICE inline void pair_keys(const Grid& g, const std::byte* table, std::byte* scratch,
                                        const Bases& bases) {
  const PairTable& t = *reinterpret_cast<const PairTable*>(table);
  const SortItem& s = entries(table, t.items)[g.item];
  const SortColumn& keys = *entries(table, s.columns);
  const std::byte* const in = address_of(bases, keys.in);
  const auto length = static_cast<std::uint32_t>(s.length), inner = static_cast<std::uint32_t>(s.inner);
  for (std::int64_t at = first_point(g); at < s.lines * s.length; at += point_step(g)) {
    // There are fewer than 2^32 elements; 64-bit divisions are slow.
    const auto number = static_cast<std::uint32_t>(at);
    const std::uint32_t line = number / length, place = number - line * length, outer = line / inner;
    const std::int64_t to = s.first + at,
                       from = (outer * s.length + place) * s.inner + (line - outer * inner);
    const std::byte* const p = in + from * keys.bytes;
    const std::uint64_t key = sort_key_at(t.key, keys.bytes, p);
    t.pairs.put(scratch, to, t.pairs.with_line(key, s.first_line + line),
                static_cast<std::uint32_t>(t.are_elements ? read_bits(p, keys.bytes)
                                                          : static_cast<std::uint64_t>(to)));
  }
}

/// For keys with no bits left for the line number: pairs are sorted by key alone, then by their lines, which this writes to `to`.
struct PairLinesTable {
  List<SortItem> items;
  std::int64_t count;  ///< number of pairs
  std::uint64_t values, to;
};
SHARDARRAY_DEVICE inline void pair_lines(const Grid& g, const std::byte* table, std::byte* scratch,
                                         const Bases&) {
  const PairLinesTable& t = *reinterpret_cast<const PairLinesTable*>(table);
  const SortItem* const items = entries(table, t.items);
  const auto* const values = reinterpret_cast<const std::uint32_t*>(scratch + t.values);
  for (std::int64_t at = first_point(g); at < t.count; at += point_step(g)) {
    const auto element = static_cast<std::int64_t>(values[at]);
    std::uint32_t k = 0;  // its item
    for (std::uint32_t high = t.items.count; high - k > 1;) {
      const std::uint32_t middle = k + (high - k) / 2;
      if (items[middle].first <= element) k = middle;
      else high = middle;
    }
    reinterpret_cast<std::uint32_t*>(scratch + t.to)[at] =
        static_cast<std::uint32_t>(items[k].first_line + (element - items[k].first) / items[k].length);
  }
}

/// Writes values that are elements to their places.
SHARDARRAY_DEVICE inline void pair_put(const Grid& g, const std::byte* table, std::byte* scratch,
                                       const Bases& bases) {
  const PairTable& t = *reinterpret_cast<const PairTable*>(table);
  const SortItem& s = entries(table, t.items)[g.item];
  const SortColumn& keys = *entries(table, s.columns);
  std::byte* const out = address_of(bases, keys.out);
  const auto length = static_cast<std::uint32_t>(s.length), inner = static_cast<std::uint32_t>(s.inner);
  for (std::int64_t at = first_point(g); at < s.lines * s.length; at += point_step(g)) {
    // Consecutive threads write consecutive addresses, also along strided lines.
    const auto number = static_cast<std::uint32_t>(at);
    const std::uint32_t row = number / inner, outer = row / length;
    const std::int64_t line = std::int64_t{outer} * s.inner + (number - row * inner),
                       place = row - outer * length;
    write_bits(out + at * keys.bytes, keys.bytes, t.pairs.value(scratch, s.first + line * s.length + place));
  }
}

}  // namespace shardarray::device
