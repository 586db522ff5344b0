// Updates combined in rows of a table, in their order:
//   scatter           a thread a column, which no other thread writes; it goes through all updates
//   scatter_segments  a thread an element of the table. The updates are sorted by their rows before (sort.cuh, or as pairs, whose
//                     keys are scatter_keys), so that those of a row stand together, in their order: the same bits, with as many
//                     threads as the table has elements; scatter_starts finds where those of a row begin
#pragma once
#include "kernels/pairs.cuh"

namespace shardarray::device {

struct ScatterItem {
  Address rows, updates, out;
  std::int64_t batch, table_rows, columns, updates_each;  ///< updates of a batch entry
  std::int64_t first_row;                                 ///< the global index of the table's first row
};
struct ScatterTable {
  List<ScatterItem> items;
  Instruction combine;
  std::uint64_t identity;
  std::uint32_t index_bytes, bytes;
  DType index, unused[7];
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
      // Of uint64, what is too large is negative: no row.
      const auto row = static_cast<std::int64_t>(read_integer(t.index, rows + i * t.index_bytes));
      if (row < s.first_row || row - s.first_row >= s.table_rows) continue;
      std::byte* const to = out + (row - s.first_row) * row_bytes;
      write_bits(to, t.bytes, combine(read_bits(to, t.bytes), read_bits(updates + i * row_bytes, t.bytes)));
    }
  }
}

/// The sorted updates of a row, less than 2^32: from the first to before the last.
struct Segment {
  std::uint32_t first, last;
};
struct SegmentItem {
  ScatterItem scatter;
  std::uint64_t entries;   ///< of merges, bytes into scratch memory: the rows' SortEntry, by batch entry
  std::uint64_t segments;  ///< bytes into scratch memory: a Segment of each row, by batch entry
  std::int64_t first,
      first_line;  ///< of a sort of pairs: of its updates and batch entries in those of all items
};
struct SegmentTable {
  List<SegmentItem> items;
  Pairs pairs;  ///< whose keys are the rows of the table; none where merges sorted (key_bytes is 0)
  Instruction combine;
  std::uint64_t identity;
  std::uint32_t index_bytes, bytes;
  DType index, unused[7];
};

/// The pairs of all updates: by rows of the table, and those of other rows behind them.
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
  /// Of a row of the table. `number`: its global one.
  SHARDARRAY_DEVICE std::uint64_t key_of(std::int64_t row, std::uint64_t number) const {
    return are_pairs() ? static_cast<std::uint64_t>(row) : integer_sort_key(t_.index, t_.index_bytes, number);
  }
  SHARDARRAY_DEVICE std::uint64_t key(std::int64_t k) const {
    return are_pairs() ? t_.pairs.key(scratch_, first_ + k) : entries_[k].key;
  }
  /// The update's number in its batch entry.
  SHARDARRAY_DEVICE std::int64_t from(std::int64_t k) const {
    return are_pairs() ? t_.pairs.value(scratch_, first_ + k) - first_ : entries_[k].from;
  }
  /// The first of `count` whose key is at least that.
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
  // Global indices of rows that the type of the indices does not hold are nobody's.
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
    if (elements >> 32 == 0) {  // divisions of 64 bits take long
      auto number = static_cast<std::uint32_t>(at);
      column = take_off(number, static_cast<std::uint32_t>(s.columns));
      row = number;
    } else {
      column = at % s.columns;
      row = at / s.columns;
    }
    const Segment of_row = segments[row];  // of all batch entries
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

}  // namespace shardarray::device
