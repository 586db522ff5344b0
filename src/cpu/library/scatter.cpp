// Rows combined in a table, in their order.
#include <algorithm>
#include <cstring>

#include "base/ceil_div.h"
#include "cpu/address.h"
#include "cpu/library/combined.h"
#include "cpu/library/library_call.h"
#include "runtime/evaluate_instruction.h"

namespace shardarray {
namespace {

constexpr std::int64_t column_block = 64;

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
  std::int64_t batch, rows, columns, updates;

  // Units: blocks of columns, table by table.
  std::int64_t blocks() const { return ceil_div(columns, column_block); }
  std::int64_t units() const { return rows == 0 ? 0 : batch * blocks(); }

  void operator()(void* const* bases, std::int64_t begin, std::int64_t end) const {
    const char* const at = address(bases, item.in[0]);
    const auto* const values = reinterpret_cast<const T*>(address(bases, item.in[1]));
    auto* const out = reinterpret_cast<T*>(address(bases, item.out[0]));
    const auto index_size = static_cast<std::int64_t>(itemsize(index));
    const std::int64_t first_row = item.params[0];
    for (std::int64_t u = begin, next; u < end; u = next) {
      const std::int64_t b = u / blocks(), first = u % blocks() * column_block;
      next = std::min(end, (b + 1) * blocks());
      const std::int64_t count = std::min(columns, first + (next - u) * column_block) - first;
      T* const table = out + b * rows * columns + first;
      for (std::int64_t row = 0; row < rows; row++) std::fill_n(table + row * columns, count, identity);
      for (std::int64_t i = b * updates; i < (b + 1) * updates; i++) {
        const std::int64_t row = read_index(index, at + i * index_size);
        if (row < first_row || row - first_row >= rows) continue;
        T* const to = table + (row - first_row) * columns;
        const T* const update = values + i * columns + first;
        for (std::int64_t c = 0; c < count; c++) to[c] = combined<r>(to[c], update[c]);
      }
    }
  }
};

template <Reducer r, class T> LibraryPlan plan_of(const LibraryCall& call, const LibraryCall::Item& item) {
  const Shape& table = item.out_shapes[0];
  const std::uint64_t bits = identity_bits(r, call.in_types[1]);
  const auto identity = read_number<T>(reinterpret_cast<const char*>(&bits));
  Scatter<r, T> s{item, call.in_types[0], identity, table[0], table[1], table[2], item.in_shapes[0][1]};
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
