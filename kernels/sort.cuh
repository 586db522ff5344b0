// Stable sorts along a dimension: by (key, position), a total order. Several launches, which pass entries on in scratch memory:
//   runs    short runs, each sorted by a thread
//   merge   two neighbouring runs into one: each entry finds its place by a search in the other run; one launch per width
//   gather  all columns in the new order, into scratch memory, because outputs may alias inputs
//   put     from there into the outputs
#pragma once
#include "kernels/arithmetic.cuh"

namespace shardarray::device {

inline constexpr std::int64_t sort_run = 8;

struct SortEntry {
  std::uint64_t key;
  std::int64_t from;  ///< position in the line
};
struct SortColumn {
  Address in, out;
  std::uint64_t staged;  ///< scratch offset
  std::uint32_t bytes, unused;
};
/// Lines of `length` elements with stride `inner`.
struct SortItem {
  std::int64_t lines, length, inner;
  std::uint64_t
      entries[2];  ///< scratch offsets of the entries, line by line; merges go from one to the other
  List<SortColumn> columns;        ///< the first one has the keys
  std::int64_t first, first_line;  ///< offset of its elements and lines among those of all items (pairs.cuh)
};
struct SortTable {
  List<SortItem> items;
  std::int64_t width;   ///< merge: the width of runs
  std::uint64_t order;  ///< gather, after a sort of pairs: scratch offset of the sorted elements' numbers
  std::uint32_t side;   ///< which of `entries` is read
  DType key;
  bool has_order;
  std::uint8_t unused[2];
};

/// Floats of any width by sign and magnitude: magnitudes above `infinity` are NaN, the greatest key; both zeros have the same key.
SHARDARRAY_DEVICE inline std::uint64_t float_sort_key(std::uint64_t bits, int width, std::uint64_t infinity) {
  const std::uint64_t sign = std::uint64_t{1} << (width - 1), magnitude = bits & (sign - 1);
  if (magnitude > infinity) return sign | (sign - 1);
  return bits & sign ? sign - magnitude : sign + magnitude;
}
/// A signed or unsigned integer, extended to 64 bits.
SHARDARRAY_DEVICE inline std::uint64_t read_integer(DType t, const std::byte* p) {
  switch (t) {
    case DType::int8:
      return static_cast<std::uint64_t>(std::int64_t{*reinterpret_cast<const std::int8_t*>(p)});
    case DType::int16:
      return static_cast<std::uint64_t>(std::int64_t{*reinterpret_cast<const std::int16_t*>(p)});
    case DType::int32:
      return static_cast<std::uint64_t>(std::int64_t{*reinterpret_cast<const std::int32_t*>(p)});
    case DType::bool_:
    case DType::uint8: return read_bits(p, 1);
    case DType::uint16: return read_bits(p, 2);
    case DType::uint32: return read_bits(p, 4);
    default: return read_bits(p, 8);
  }
}
/// The key of a value of type t with elements of so many bytes.
SHARDARRAY_DEVICE inline std::uint64_t integer_sort_key(DType t, std::uint32_t bytes, std::uint64_t value) {
  const std::uint64_t bits = 8 * bytes, all = ~std::uint64_t{0} >> (64 - bits);
  return (is_signed_integer(t) ? value ^ std::uint64_t{1} << (bits - 1) : value) & all;
}
/// A key that sorts as the values do, with as many bits; all set for NaN.
SHARDARRAY_DEVICE inline std::uint64_t sort_key_at(DType t, std::uint32_t bytes, const std::byte* p) {
  switch (t) {
    case DType::float16: return float_sort_key(read_bits(p, 2), 16, 0x7c00);
    case DType::bfloat16: return float_sort_key(read_bits(p, 2), 16, 0x7f80);
    case DType::float32: return float_sort_key(read_bits(p, 4), 32, 0x7f800000);
    case DType::float64: return float_sort_key(read_bits(p, 8), 64, 0x7ff0000000000000);
    default: break;
  }
  return integer_sort_key(t, bytes, read_integer(t, p));
}

SHARDARRAY_DEVICE inline bool sorts_before(const SortEntry& a, const SortEntry& b) {
  return a.key != b.key ? a.key < b.key : a.from < b.from;
}
/// The flat index of the element `at` of a line.
SHARDARRAY_DEVICE inline std::int64_t sorted_element(const SortItem& s, std::int64_t line, std::int64_t at) {
  return (line / s.inner * s.length + at) * s.inner + line % s.inner;
}
SHARDARRAY_DEVICE inline SortEntry* sort_entries(const SortItem& s, std::byte* scratch, std::uint32_t side) {
  return reinterpret_cast<SortEntry*>(scratch + s.entries[side]);
}

SHARDARRAY_DEVICE inline void sort_runs(const Grid& g, const std::byte* table, std::byte* scratch,
                                        const Bases& bases) {
  const SortTable& t = *reinterpret_cast<const SortTable*>(table);
  const SortItem& s = entries(table, t.items)[g.item];
  const SortColumn& keys = *entries(table, s.columns);
  const std::byte* const in = address_of(bases, keys.in);
  const std::int64_t runs = (s.length + sort_run - 1) / sort_run;
  for (std::int64_t r = first_point(g); r < s.lines * runs; r += point_step(g)) {
    const std::int64_t line = r / runs, begin = r % runs * sort_run;
    const std::int64_t end = begin + sort_run < s.length ? begin + sort_run : s.length;
    SortEntry* const out = sort_entries(s, scratch, 0) + line * s.length;
    for (std::int64_t i = begin; i < end; i++) {
      const SortEntry e = {sort_key_at(t.key, keys.bytes, in + sorted_element(s, line, i) * keys.bytes), i};
      std::int64_t to = i;
      for (; to > begin && sorts_before(e, out[to - 1]); to--) out[to] = out[to - 1];
      out[to] = e;
    }
  }
}

SHARDARRAY_DEVICE inline void sort_merge(const Grid& g, const std::byte* table, std::byte* scratch,
                                         const Bases&) {
  const SortTable& t = *reinterpret_cast<const SortTable*>(table);
  const SortItem& s = entries(table, t.items)[g.item];
  for (std::int64_t at = first_point(g); at < s.lines * s.length; at += point_step(g)) {
    const std::int64_t line = at / s.length, i = at % s.length, run = i / t.width;
    const SortEntry* const from = sort_entries(s, scratch, t.side) + line * s.length;
    const SortEntry e = from[i];
    const std::int64_t other = (run ^ 1) * t.width;
    std::int64_t low = other < s.length ? other : s.length;
    const std::int64_t first = low;
    for (std::int64_t high = other + t.width < s.length ? other + t.width : s.length; low < high;) {
      const std::int64_t middle = low + (high - low) / 2;
      if (sorts_before(from[middle], e)) low = middle + 1;
      else high = middle;
    }
    const std::int64_t to = run / 2 * 2 * t.width + i % t.width + (low - first);
    sort_entries(s, scratch, 1 - t.side)[line * s.length + to] = e;
  }
}

SHARDARRAY_DEVICE inline void sort_gather(const Grid& g, const std::byte* table, std::byte* scratch,
                                          const Bases& bases) {
  const SortTable& t = *reinterpret_cast<const SortTable*>(table);
  const SortItem& s = entries(table, t.items)[g.item];
  const SortColumn* const columns = entries(table, s.columns);
  const auto* const order = reinterpret_cast<const std::uint32_t*>(scratch + t.order);
  for (std::int64_t at = first_point(g); at < s.lines * s.length; at += point_step(g)) {
    const std::int64_t line = at / s.length;
    const std::int64_t place = t.has_order ? order[s.first + at] - (s.first + line * s.length)
                                           : sort_entries(s, scratch, t.side)[at].from;
    const std::int64_t from = sorted_element(s, line, place);
    const std::int64_t to = sorted_element(s, line, at % s.length);
    for (std::uint32_t c = 0; c < s.columns.count; c++) {
      const std::int64_t bytes = columns[c].bytes;
      copy_element(scratch + columns[c].staged + to * bytes, address_of(bases, columns[c].in) + from * bytes,
                   columns[c].bytes);
    }
  }
}

SHARDARRAY_DEVICE inline void sort_put(const Grid& g, const std::byte* table, std::byte* scratch,
                                       const Bases& bases) {
  const SortTable& t = *reinterpret_cast<const SortTable*>(table);
  const SortItem& s = entries(table, t.items)[g.item];
  const SortColumn* const columns = entries(table, s.columns);
  for (std::int64_t at = first_point(g); at < s.lines * s.length; at += point_step(g)) {
    for (std::uint32_t c = 0; c < s.columns.count; c++) {
      const std::int64_t bytes = columns[c].bytes;
      copy_element(address_of(bases, columns[c].out) + at * bytes, scratch + columns[c].staged + at * bytes,
                   columns[c].bytes);
    }
  }
}

}  // namespace shardarray::device
