// Rows combined in a table, in their order.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/ceil_div.h"
#include "cpu/address.h"
#include "cpu/library/combined.h"
#include "cpu/library/library_call.h"
#include "runtime/evaluate_instruction.h"
#include "runtime/pool.h"

namespace shardarray {
namespace {

constexpr std::int64_t column_block = 64;
// Each part of many updates' rows looks at all of their indices, and its updates stand apart: no more than there are workers. However
// many there are, a row is combined in the order of its updates.
constexpr std::int64_t many_updates = 4096, most_parts = 4;
constexpr std::int64_t ahead = 16;  // updates of a part: as far as rows are asked for, which stand anywhere

std::int64_t read_index(DType t, const char* p) {
  switch (t) {
    case DType::int8: return read_number<std::int8_t>(p);
    case DType::int16: return read_number<std::int16_t>(p);
    case DType::int32: return read_number<std::int32_t>(p);
    case DType::uint8: return read_number<std::uint8_t>(p);
    case DType::uint16: return read_number<std::uint16_t>(p);
    case DType::uint32: return read_number<std::uint32_t>(p);
    default: return read_number<std::int64_t>(p);  // of uint64, what is too large is negative: no row
  }
}

/// Rows [b, n] and updates [b, n, d] into [b, v, d].
template <Reducer r, class T> struct Scatter {
  LibraryCall::Item item;
  DType index;
  T identity;
  std::int64_t batch, rows, columns, updates, row_parts;

  // Units: blocks of columns, part of the rows by part, table by table.
  std::int64_t blocks() const { return ceil_div(columns, column_block); }
  std::int64_t parts() const {
    return updates < many_updates
               ? 1
               : std::clamp<std::int64_t>(row_parts / std::max<std::int64_t>(batch * blocks(), 1), 1, rows);
  }
  std::int64_t units() const { return rows == 0 ? 0 : batch * parts() * blocks(); }

  void operator()(void* const* bases, std::int64_t begin, std::int64_t end) const {
    for (std::int64_t u = begin, next; u < end; u = next) {
      const std::int64_t part = u / blocks(), first = u % blocks() * column_block;
      next = std::min(end, (part + 1) * blocks());
      const std::int64_t count = std::min(columns, first + (next - u) * column_block) - first;
      combine_part(bases, part / parts(), part % parts(), first, count);
    }
  }

 private:
  void combine_part(void* const* bases, std::int64_t table, std::int64_t part, std::int64_t first,
                    std::int64_t count) const {
    const char* const at = address(bases, item.in[0]);
    const auto* const values = reinterpret_cast<const T*>(address(bases, item.in[1])) + first;
    T* const out = reinterpret_cast<T*>(address(bases, item.out[0])) + table * rows * columns + first;
    const auto index_size = static_cast<std::int64_t>(itemsize(index));
    const std::int64_t first_row = item.params[0], lo = first_row + rows * part / parts(),
                       hi = first_row + rows * (part + 1) / parts(), end = (table + 1) * updates;
    const auto row_of = [&](std::int64_t i) { return read_index(index, at + i * index_size); };
    const auto has = [&](std::int64_t row) { return row >= lo && row < hi; };
    const auto in_table = [&](std::int64_t row) { return out + (row - first_row) * columns; };
    std::vector<bool> met(static_cast<std::size_t>(hi - lo));  // rows: others are written once, at the end
    const std::int64_t far = ahead * parts();                  // one of so many is of this part
    for (std::int64_t i = table * updates; i < end; i++) {
      if (i + far < end)
        if (const std::int64_t soon = row_of(i + far); has(soon)) {
          ask_for(in_table(soon), count);
          ask_for(values + (i + far) * columns, count);
        }
      const std::int64_t row = row_of(i);
      if (!has(row)) continue;
      if (auto&& is_met = met[static_cast<std::size_t>(row - lo)]; !is_met) {
        is_met = true;
        combine<true>(in_table(row), values + i * columns, count);
      } else {
        combine<false>(in_table(row), values + i * columns, count);
      }
    }
    for (std::int64_t row = lo; row < hi; row++)
      if (!met[static_cast<std::size_t>(row - lo)]) std::fill_n(in_table(row), count, identity);
  }
  // A first update is combined with the identity, which nobody has written.
  template <bool first> void combine(T* to, const T* update, std::int64_t count) const {
    combine_each(to, update, count, [&](T a, T b) { return combined<r>(first ? identity : a, b); });
  }
  static void ask_for(const T* row, std::int64_t count) {
    constexpr std::int64_t line = 64, most_lines = 8;
    const char* const p = reinterpret_cast<const char*>(row);
    const std::int64_t bytes =
        std::min<std::int64_t>(count * static_cast<std::int64_t>(sizeof(T)), most_lines * line);
    for (std::int64_t k = 0; k < bytes; k += line) __builtin_prefetch(p + k, 1);
  }
};

template <Reducer r, class T> LibraryPlan plan_of(const LibraryCall& call, const LibraryCall::Item& item) {
  const Shape& table = item.out_shapes[0];
  const std::uint64_t bits = identity_bits(r, call.in_types[1]);
  const auto identity = read_number<T>(reinterpret_cast<const char*>(&bits));
  Scatter<r, T> s{item,
                  call.in_types[0],
                  identity,
                  table[0],
                  table[1],
                  table[2],
                  item.in_shapes[0][1],
                  std::min<std::int64_t>(most_parts, ThreadPool::instance().worker_count())};
  const std::int64_t units = s.units();
  const double cost =
      static_cast<double>(s.batch) * (static_cast<double>((s.rows + s.updates) * s.columns) * 0.5 +
                                      static_cast<double>(s.updates * s.blocks()) * 3);
  return {units, cost, std::move(s)};
}

}  // namespace

LibraryPlan plan_scatter(const LibraryCall& call, const LibraryCall::Item& item) {
  const DType index = call.in_types[0], values = call.in_types[1];
  if (!is_integer(index)) refuse_dtype("scatter", index, "rows of an integer dtype");
  return with_number_type("scatter", values, [&]<class T>(T) {
    return with_reducer(item.params[1], [&]<Reducer r>() { return plan_of<r, T>(call, item); });
  });
}

}  // namespace shardarray
