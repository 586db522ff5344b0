// Updates combined into rows of a table, in their order:
//   scatter           one thread per column, which no other thread writes; it goes through all updates
//   scatter_segments  one thread per element of the table. The updates were sorted by row (sort.cuh, or as pairs with the keys of
//                     scatter_keys), so that those of a row are adjacent, in order: the same bits, with as many threads as the table has
//                     elements. scatter_starts finds each row's first update
//   update_rows         into rows of x, which `out` holds: one thread per element of the updates. The row's first update, or its last one
//                       if they overwrite, does all of them; threads look for others of their row
//   update_row_segments the same with sorted updates, where the others are adjacent
#pragma once
#include <type_traits>

#include "kernels/halves.cuh"
#include "kernels/pairs.cuh"

namespace shardarray::device {

struct ScatterItem {
  Address rows, updates, out;
  std::int64_t batch, table_rows, columns, updates_each;  ///< per batch entry
  std::int64_t first_row;                                 ///< global index of the table's first row
};
struct ScatterTable {
  List<ScatterItem> items;
  Instruction combine;
  std::uint64_t identity;
  std::uint32_t index_bytes, bytes;
  DType index, half;  ///< `half`: of values that are combined in float32, else bool
  std::uint8_t unused[6];
};

template <class Combine>
SHARDARRAY_DEVICE void scatter(const Grid& g, const std::byte* table, std::byte*, const Bases& bases) {
  const ScatterTable& t = *reinterpret_cast<const ScatterTable*>(table);
  const Combine combine{t.combine};
  const ScatterItem& s = entries(table, t.items)[g.item];
  for (std::int64_t at = first_point(g); at < s.batch * s.columns; at += point_step(g)) {
    const std::int64_t batch = at / s.columns, column = at % s.columns, row_bytes = s.columns * t.bytes;
    std::byte* const out = address_of(bases, s.out) + batch * s.table_rows * row_bytes + column * t.bytes;
    for (std::int64_t r = 0; r < s.table_rows; r++) write_bits(out + r * row_bytes, t.bytes, t.identity);
    const std::int64_t first = batch * s.updates_each;
    const std::byte* const rows = address_of(bases, s.rows);
    const std::byte* const updates = address_of(bases, s.updates) + column * t.bytes;
    for (std::int64_t i = first; i < first + s.updates_each; i++) {
      // A uint64 index that is too large turns negative: no row.
      const auto row = static_cast<std::int64_t>(read_integer(t.index, rows + i * t.index_bytes));
      if (row < s.first_row || row - s.first_row >= s.table_rows) continue;
      std::byte* const to = out + (row - s.first_row) * row_bytes;
      write_bits(to, t.bytes, combine(read_bits(to, t.bytes), read_bits(updates + i * row_bytes, t.bytes)));
    }
  }
}

/// A row's range of sorted updates: first inclusive, last exclusive; numbers below 2^32.
struct Segment {
  std::uint32_t first, last;
};
struct SegmentItem {
  ScatterItem scatter;
  std::uint64_t entries;   ///< if merges sorted: scratch offset of the rows' SortEntry, by batch entry
  std::uint64_t segments;  ///< scratch offset of each row's Segment, by batch entry
  std::int64_t first,
      first_line;  ///< of a sort of pairs: its updates' and batch entries' offset among those of all items
};
struct SegmentTable {
  List<SegmentItem> items;
  Pairs pairs;  ///< their keys are table rows; key_bytes is 0 if merges sorted
  Instruction combine;
  std::uint64_t identity;
  std::uint32_t index_bytes, bytes;
  DType index, half;  ///< `half`: of values that are combined in float32, else bool
  std::uint8_t unused[6];
};

/// Pairs for all updates: by table row; updates of other rows sort last.
SHARDARRAY_DEVICE inline void scatter_keys(const Grid& g, const std::byte* table, std::byte* scratch,
                                           const Bases& bases) {
  const SegmentTable& t = *reinterpret_cast<const SegmentTable*>(table);
  const SegmentItem& item = entries(table, t.items)[g.item];
  const ScatterItem& s = item.scatter;
  const std::byte* const rows = address_of(bases, s.rows);
  for (std::int64_t at = first_point(g); at < s.batch * s.updates_each; at += point_step(g)) {
    const auto row = static_cast<std::int64_t>(read_integer(t.index, rows + at * t.index_bytes));
    const bool is_here = row >= s.first_row && row - s.first_row < s.table_rows;
    const std::int64_t key = is_here ? row - s.first_row : s.table_rows;
    t.pairs.put(scratch, item.first + at,
                t.pairs.with_line(static_cast<std::uint64_t>(key), item.first_line + at / s.updates_each),
                static_cast<std::uint32_t>(item.first + at));
  }
}

/// The sorted updates of a batch entry.
class SortedUpdates {
 public:
  SHARDARRAY_DEVICE SortedUpdates(const SegmentTable& t, const SegmentItem& item, std::int64_t batch,
                                  const std::byte* scratch)
      : t_(t),
        scratch_(scratch),
        first_(item.first + batch * item.scatter.updates_each),
        entries_(reinterpret_cast<const SortEntry*>(scratch + item.entries) +
                 batch * item.scatter.updates_each) {}
  /// The key of a table row. `number`: its global index.
  SHARDARRAY_DEVICE std::uint64_t key_of(std::int64_t row, std::uint64_t number) const {
    return are_pairs() ? static_cast<std::uint64_t>(row) : integer_sort_key(t_.index, t_.index_bytes, number);
  }
  SHARDARRAY_DEVICE std::uint64_t key(std::int64_t k) const {
    return are_pairs() ? t_.pairs.key(scratch_, first_ + k) : entries_[k].key;
  }
  /// The update's number within its batch entry.
  SHARDARRAY_DEVICE std::int64_t from(std::int64_t k) const {
    return are_pairs() ? t_.pairs.value(scratch_, first_ + k) - first_ : entries_[k].from;
  }
  /// The first of `count` whose key is at least `wanted`.
  SHARDARRAY_DEVICE std::int64_t first_of(std::uint64_t wanted, std::int64_t count) const {
    std::int64_t low = 0;
    for (std::int64_t high = count; low < high;) {
      const std::int64_t middle = low + (high - low) / 2;
      if (key(middle) < wanted) low = middle + 1;
      else high = middle;
    }
    return low;
  }

 private:
  SHARDARRAY_DEVICE bool are_pairs() const { return t_.pairs.key_bytes != 0; }
  const SegmentTable& t_;
  const std::byte* const scratch_;
  const std::int64_t first_;
  const SortEntry* const entries_;
};

SHARDARRAY_DEVICE inline void scatter_starts(const Grid& g, const std::byte* table, std::byte* scratch,
                                             const Bases&) {
  const SegmentTable& t = *reinterpret_cast<const SegmentTable*>(table);
  const SegmentItem& item = entries(table, t.items)[g.item];
  const ScatterItem& s = item.scatter;
  // No update has a row index that the index type cannot hold.
  const std::uint64_t bits = 8 * t.index_bytes - (is_signed_integer(t.index) ? 1 : 0);
  const std::uint64_t most = ~std::uint64_t{0} >> (64 - bits);
  auto* const segments = reinterpret_cast<Segment*>(scratch + item.segments);
  for (std::int64_t at = first_point(g); at < s.batch * s.table_rows; at += point_step(g)) {
    const std::int64_t row = at % s.table_rows;
    const auto wanted = static_cast<std::uint64_t>(s.first_row + row);
    const SortedUpdates sorted(t, item, at / s.table_rows, scratch);
    const std::uint64_t key = sorted.key_of(row, wanted);
    Segment of_row{0, 0};
    if (wanted <= most) {
      of_row.first = static_cast<std::uint32_t>(sorted.first_of(key, s.updates_each));
      of_row.last = static_cast<std::uint32_t>(
          key == ~std::uint64_t{0} ? s.updates_each : sorted.first_of(key + 1, s.updates_each));
    }
    segments[at] = of_row;
  }
}

template <class Combine>
SHARDARRAY_DEVICE void scatter_segments(const Grid& g, const std::byte* table, std::byte* scratch,
                                        const Bases& bases) {
  const SegmentTable& t = *reinterpret_cast<const SegmentTable*>(table);
  const Combine combine{t.combine};
  const SegmentItem& item = entries(table, t.items)[g.item];
  const ScatterItem& s = item.scatter;
  const auto* const segments = reinterpret_cast<const Segment*>(scratch + item.segments);
  const std::byte* const all = address_of(bases, s.updates);
  std::byte* const out = address_of(bases, s.out);
  const std::int64_t elements = s.batch * s.table_rows * s.columns;
  for (std::int64_t at = first_point(g); at < elements; at += point_step(g)) {
    std::int64_t column = 0, row = 0;
    if (elements >> 32 == 0) {  // 64-bit divisions are slow
      auto number = static_cast<std::uint32_t>(at);
      column = take_off(number, static_cast<std::uint32_t>(s.columns));
      row = number;
    } else {
      column = at % s.columns;
      row = at / s.columns;
    }
    const Segment of_row = segments[row];  // rows of all batch entries
    std::uint64_t x = t.identity;
    if (of_row.first < of_row.last) {
      const std::int64_t batch = row / s.table_rows;
      const SortedUpdates sorted(t, item, batch, scratch);
      const std::byte* const updates = all + (batch * s.updates_each * s.columns + column) * t.bytes;
      for (std::int64_t k = of_row.first; k < of_row.last; k++)
        x = combine(x, read_bits(updates + sorted.from(k) * s.columns * t.bytes, t.bytes));
    }
    write_bits(out + at * t.bytes, t.bytes, x);
  }
}

/// An element of the updates; `place`: that of its update within the batch entry.
struct RowElement {
  std::int64_t batch, place, column;

  SHARDARRAY_DEVICE RowElement(const ScatterItem& s, std::int64_t at) {
    const std::int64_t each = s.updates_each * s.columns;
    batch = at / each;
    place = at % each / s.columns;
    column = at % s.columns;
  }
};
/// The row of an update, or -1 if it is not in this tile.
SHARDARRAY_DEVICE inline std::int64_t row_of_update(const ScatterItem& s, const Bases& bases, DType index,
                                                    std::uint32_t index_bytes, std::int64_t update) {
  const auto row =
      static_cast<std::int64_t>(read_integer(index, address_of(bases, s.rows) + update * index_bytes));
  return row < s.first_row || row - s.first_row >= s.table_rows ? -1 : row - s.first_row;
}

/// 16-bit floats are combined in float32.
SHARDARRAY_DEVICE inline std::uint64_t widened(DType half, std::uint64_t bits) {
  if (half == DType::float16) return pack(widen_float16(static_cast<std::uint16_t>(bits)));
  if (half == DType::bfloat16) return pack(widen_bfloat16(static_cast<std::uint16_t>(bits)));
  return bits;
}
SHARDARRAY_DEVICE inline std::uint64_t narrowed_to(DType half, std::uint64_t bits) {
  if (half == DType::float16) return narrow_float16(value_of<float>(bits));
  if (half == DType::bfloat16) return narrow_bfloat16(value_of<float>(bits));
  return bits;
}

template <class Combine>
SHARDARRAY_DEVICE void update_rows(const Grid& g, const std::byte* table, std::byte*, const Bases& bases) {
  constexpr bool overwrites = std::is_same_v<Combine, NoCombine>;
  const ScatterTable& t = *reinterpret_cast<const ScatterTable*>(table);
  const Combine combine{t.combine};
  const ScatterItem& s = entries(table, t.items)[g.item];
  for (std::int64_t at = first_point(g); at < s.batch * s.updates_each * s.columns; at += point_step(g)) {
    const RowElement e(s, at);
    const std::int64_t first = e.batch * s.updates_each;
    const auto row_of = [&](std::int64_t i) {
      return row_of_update(s, bases, t.index, t.index_bytes, first + i);
    };
    const std::int64_t row = row_of(e.place);
    bool is_mine = row >= 0;
    for (std::int64_t i = overwrites ? e.place + 1 : 0;
         is_mine && i < (overwrites ? s.updates_each : e.place); i++)
      is_mine = row_of(i) != row;
    if (!is_mine) continue;
    std::byte* const out =
        address_of(bases, s.out) + ((e.batch * s.table_rows + row) * s.columns + e.column) * t.bytes;
    const std::byte* const updates = address_of(bases, s.updates) + (first * s.columns + e.column) * t.bytes;
    const auto update = [&](std::int64_t i) { return read_bits(updates + i * s.columns * t.bytes, t.bytes); };
    if constexpr (overwrites) {
      write_bits(out, t.bytes, update(e.place));
    } else {
      std::uint64_t x = widened(t.half, read_bits(out, t.bytes));
      for (std::int64_t i = e.place; i < s.updates_each; i++)
        if (row_of(i) == row) x = combine(x, widened(t.half, update(i)));
      write_bits(out, t.bytes, narrowed_to(t.half, x));
    }
  }
}

template <class Combine>
SHARDARRAY_DEVICE void update_row_segments(const Grid& g, const std::byte* table, std::byte* scratch,
                                           const Bases& bases) {
  constexpr bool overwrites = std::is_same_v<Combine, NoCombine>;
  const SegmentTable& t = *reinterpret_cast<const SegmentTable*>(table);
  const Combine combine{t.combine};
  const SegmentItem& item = entries(table, t.items)[g.item];
  const ScatterItem& s = item.scatter;
  for (std::int64_t at = first_point(g); at < s.batch * s.updates_each * s.columns; at += point_step(g)) {
    const RowElement e(s, at);
    const std::int64_t first = e.batch * s.updates_each;
    const SortedUpdates sorted(t, item, e.batch, scratch);
    const std::uint64_t key = sorted.key(e.place);
    if constexpr (overwrites) {
      if (e.place + 1 < s.updates_each && sorted.key(e.place + 1) == key) continue;
    } else {
      if (e.place > 0 && sorted.key(e.place - 1) == key) continue;
    }
    const std::int64_t row = row_of_update(s, bases, t.index, t.index_bytes, first + sorted.from(e.place));
    if (row < 0) continue;
    std::byte* const out =
        address_of(bases, s.out) + ((e.batch * s.table_rows + row) * s.columns + e.column) * t.bytes;
    const std::byte* const updates = address_of(bases, s.updates) + (first * s.columns + e.column) * t.bytes;
    const auto update = [&](std::int64_t k) {
      return read_bits(updates + sorted.from(k) * s.columns * t.bytes, t.bytes);
    };
    if constexpr (overwrites) {
      write_bits(out, t.bytes, update(e.place));
    } else {
      std::uint64_t x = widened(t.half, read_bits(out, t.bytes));
      for (std::int64_t k = e.place; k < s.updates_each && sorted.key(k) == key; k++)
        x = combine(x, widened(t.half, update(k)));
      write_bits(out, t.bytes, narrowed_to(t.half, x));
    }
  }
}

}  // namespace shardarray::device
