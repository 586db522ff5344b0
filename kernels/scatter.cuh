// Updates combined in rows of a table, in their order:
//   scatter           a thread a column, which no other thread writes; it goes through all updates
//   scatter_segments  a thread an element of the table. The updates are sorted by their rows before (sort.cuh), so that those of a
//                     row stand together, in their order: the same bits, with as many threads as the table has elements
#pragma once
#include "kernels/sort.cuh"

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

struct SegmentItem {
  ScatterItem scatter;
  std::uint64_t entries;  ///< bytes into scratch memory: the rows' SortEntry, by batch entry
};
struct SegmentTable {
  List<SegmentItem> items;
  Instruction combine;
  std::uint64_t identity;
  std::uint32_t index_bytes, bytes;
  DType index, unused[7];
};

/// The first of sorted entries whose key is at least that.
SHARDARRAY_DEVICE inline std::int64_t first_entry(const SortEntry* entries, std::int64_t count,
                                                  std::uint64_t key) {
  std::int64_t low = 0;
  for (std::int64_t high = count; low < high;) {
    const std::int64_t middle = low + (high - low) / 2;
    if (entries[middle].key < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

template <class Combine>
SHARDARRAY_DEVICE void scatter_segments(const Grid& g, const std::byte* table, std::byte* scratch,
                                        const Bases& bases) {
  const SegmentTable& t = *reinterpret_cast<const SegmentTable*>(table);
  const Combine combine{t.combine};
  const SegmentItem& item = entries(table, t.items)[g.item];
  const ScatterItem& s = item.scatter;
  // Global indices of rows that the type of the indices does not hold are nobody's.
  const std::uint64_t bits = 8 * t.index_bytes - (is_signed_integer(t.index) ? 1 : 0);
  const std::uint64_t most = ~std::uint64_t{0} >> (64 - bits);
  for (std::int64_t at = first_point(g); at < s.batch * s.table_rows * s.columns; at += point_step(g)) {
    const std::int64_t column = at % s.columns, row = at / s.columns % s.table_rows,
                       batch = at / s.columns / s.table_rows;
    const auto wanted = static_cast<std::uint64_t>(s.first_row + row);
    const SortEntry* const all =
        reinterpret_cast<const SortEntry*>(scratch + item.entries) + batch * s.updates_each;
    const std::uint64_t key = integer_sort_key(t.index, t.index_bytes, wanted);
    const std::byte* const updates =
        address_of(bases, s.updates) + (batch * s.updates_each * s.columns + column) * t.bytes;
    std::uint64_t x = t.identity;
    if (wanted <= most)
      for (std::int64_t k = first_entry(all, s.updates_each, key); k < s.updates_each && all[k].key == key;
           k++)
        x = combine(x, read_bits(updates + all[k].from * s.columns * t.bytes, t.bytes));
    write_bits(address_of(bases, s.out) + at * t.bytes, t.bytes, x);
  }
}

}  // namespace shardarray::device
