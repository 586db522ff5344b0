// Updates combined in rows of a table, in their order: a thread a column, which no other thread writes.
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

}  // namespace shardarray::device
