// Combines updates into rows of a table, in order: of a new one, or of x (update_rows).
#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "base/ceil_div.h"
#include "base/complex_parts.h"
#include "cpu/address.h"
#include "cpu/library/combined.h"
#include "cpu/library/half_numbers.h"
#include "cpu/library/library_call.h"
#include "runtime/evaluate_instruction.h"
#include "runtime/half_floats.h"
#include "runtime/pool.h"

namespace shardarray {
namespace {

// Workers divide the columns of wide rows, else the rows; either way a row's updates are combined in order. Rows of a few elements are
// left to one worker: combining them takes no longer than telling the parts' updates apart.
constexpr std::int64_t most_parts = 4, least_columns = 32, few_columns = 4, many_updates = 4096;
constexpr std::int64_t block_updates = 1024;  // indices that are decoded at a time
constexpr std::int64_t ahead = 16;            // prefetch distance in updates; rows are at random places

/// rows[k]: the row of index k relative to `first`, as unsigned: an index that is no row is larger than every row.
void read_rows(DType t, const char* indices, std::int64_t count, std::int64_t first, std::uint64_t* rows) {
  scalar::with_type(t, [&](auto x) {
    using I = decltype(x);
    if constexpr (std::is_integral_v<I>)
      for (std::int64_t k = 0; k < count; k++)  // a uint64 that is too large turns negative
        rows[k] =
            static_cast<std::uint64_t>(static_cast<std::int64_t>(read_number<I>(indices + k * sizeof(I)))) -
            static_cast<std::uint64_t>(first);
  });
}

/// Rows [b, n] and updates [b, n, d] into [b, v, d].
template <Reducer r, class T> struct Scatter {
  Ref indices, updated, out;
  DType index;
  std::int64_t first_row;
  bool has_x;  ///< `out` holds x; else it becomes the identity first
  T identity;
  std::int64_t batch, rows, columns, updates, row_parts;

  // Units: blocks of columns, within parts of rows, within tables.
  std::int64_t column_block() const {
    constexpr std::int64_t vector = 16;
    return std::max(least_columns, ceil_div(ceil_div(columns, row_parts), vector) * vector);
  }
  std::int64_t blocks() const { return ceil_div(columns, column_block()); }
  std::int64_t parts() const {
    return updates < many_updates || columns < few_columns
               ? 1
               : std::clamp<std::int64_t>(row_parts / std::max<std::int64_t>(batch * blocks(), 1), 1, rows);
  }
  std::int64_t units() const { return rows == 0 || (has_x && updates == 0) ? 0 : batch * parts() * blocks(); }

  void operator()(void* const* bases, std::int64_t begin, std::int64_t end) const {
    for (std::int64_t u = begin; u < end; u++) {
      const std::int64_t part = u / blocks(), first = u % blocks() * column_block();
      combine_part(bases, part / parts(), part % parts(), first, std::min(columns - first, column_block()));
    }
  }

 private:
  void combine_part(void* const* bases, std::int64_t table, std::int64_t part, std::int64_t first,
                    std::int64_t count) const {
    const auto index_size = static_cast<std::int64_t>(itemsize(index));
    const char* const numbers = address(bases, indices) + table * updates * index_size;
    const auto* const values =
        reinterpret_cast<const T*>(address(bases, updated)) + table * updates * columns + first;
    const std::int64_t lo = rows * part / parts(), hi = rows * (part + 1) / parts();
    T* const to_rows = reinterpret_cast<T*>(address(bases, out)) + (table * rows + lo) * columns + first;
    const auto own = static_cast<std::uint64_t>(hi - lo);
    std::uint64_t row[block_updates];
    const auto each_block = [&](const auto& combine_block) {
      for (std::int64_t begin = 0; begin < updates; begin += block_updates) {
        const std::int64_t n = std::min(block_updates, updates - begin);
        read_rows(index, numbers + begin * index_size, n, first_row + lo, row);
        combine_block(values + begin * columns, n);
      }
    };
    if (columns < few_columns) {
      if (!has_x) std::fill_n(to_rows, rows * columns, identity);
      each_block([&](const T* update, std::int64_t n) {
        for (std::int64_t k = 0; k < n; k++)
          if (row[k] < own)
            for (std::int64_t c = 0; c < columns; c++) {
              T& to = to_rows[static_cast<std::int64_t>(row[k]) * columns + c];
              to = combined<r>(to, update[k * columns + c]);
            }
      });
      return;
    }
    const auto in_table = [&](std::uint64_t k) { return to_rows + static_cast<std::int64_t>(k) * columns; };
    std::vector<bool> met(has_x ? 0 : own);  // rows with updates; others are filled last
    each_block([&](const T* update, std::int64_t n) {
      std::int16_t mine[block_updates];  // compacted without an unpredictable branch
      std::int64_t found = 0;
      for (std::int64_t k = 0; k < n; k++) {
        mine[found] = static_cast<std::int16_t>(k);
        found += row[k] < own;
      }
      for (std::int64_t j = 0; j < found; j++) {
        if (j + ahead < found) {
          prefetch(in_table(row[mine[j + ahead]]), count);
          prefetch(update + mine[j + ahead] * columns, count);
        }
        const std::int64_t k = mine[j];
        if (!has_x && !met[row[k]]) {
          met[row[k]] = true;
          combine<true>(in_table(row[k]), update + k * columns, count);
        } else {
          combine<false>(in_table(row[k]), update + k * columns, count);
        }
      }
    });
    for (std::uint64_t k = 0; !has_x && k < own; k++)
      if (!met[k]) std::fill_n(in_table(k), count, identity);
  }
  // The first update is combined with the identity, which is not stored beforehand.
  template <bool first> void combine(T* to, const T* update, std::int64_t count) const {
    combine_each(to, update, count, [&](T a, T b) { return combined<r>(first ? identity : a, b); });
  }
  static void prefetch(const T* row, std::int64_t count) {
    constexpr std::int64_t line = 64, most_lines = 8;
    const char* const p = reinterpret_cast<const char*>(row);
    const std::int64_t bytes =
        std::min<std::int64_t>(count * static_cast<std::int64_t>(sizeof(T)), most_lines * line);
    for (std::int64_t k = 0; k < bytes; k += line) __builtin_prefetch(p + k, 1);
  }
};

/// The same into rows of x for 16-bit floats: in float32, rounded once. Units are tables.
template <Reducer r, class T> struct RoundedOnce {
  Ref indices, updated, out;
  DType index;
  std::int64_t first_row, rows, columns, updates;

  void operator()(void* const* bases, std::int64_t begin, std::int64_t end) const {
    for (std::int64_t table = begin; table < end; table++) {
      const auto* const values =
          reinterpret_cast<const T*>(address(bases, updated)) + table * updates * columns;
      T* const to = reinterpret_cast<T*>(address(bases, out)) + table * rows * columns;
      combine_table(address(bases, indices) + table * updates * static_cast<std::int64_t>(itemsize(index)),
                    values, to);
    }
  }

 private:
  void combine_table(const char* numbers, const T* values, T* to) const {
    std::vector<std::uint64_t> row(static_cast<std::size_t>(updates));
    read_rows(index, numbers, updates, first_row, row.data());
    const auto own = static_cast<std::uint64_t>(rows);
    constexpr std::int64_t sparse =
        64;  // above so many rows for each, hashing takes less time than tables of all rows
    const bool are_few = rows / sparse > updates;
    std::vector<bool> met(are_few ? 0 : own), again(are_few ? 0 : own);
    std::int64_t repeated = are_few ? updates : 0;
    for (std::size_t k = 0; !are_few && k < row.size(); k++) {
      if (row[k] >= own) continue;
      if (met[row[k]]) again[row[k]] = true, repeated++;
      met[row[k]] = true;
    }
    // Sums of rows with several updates, by the number of the row among these.
    const bool is_sparse = rows / sparse > repeated;
    constexpr std::uint32_t none = ~0u;
    std::vector<std::uint32_t> listed(is_sparse || repeated == 0 ? 0 : own, none);
    std::unordered_map<std::uint64_t, std::uint32_t> hashed;
    std::vector<std::uint64_t> summed;
    std::vector<float> sums;
    for (std::int64_t k = 0; k < updates; k++) {
      const std::uint64_t at = row[static_cast<std::size_t>(k)];
      if (at >= own) continue;
      T* const old = to + static_cast<std::int64_t>(at) * columns;
      const T* const update = values + k * columns;
      if (!are_few && !again[at]) {
        combine_each(old, update, columns, [](T a, T b) {
          return T::nearest(combined<r>(static_cast<float>(a), static_cast<float>(b)));
        });
        continue;
      }
      std::uint32_t& number = is_sparse ? hashed.try_emplace(at, none).first->second : listed[at];
      if (number == none) {
        number = static_cast<std::uint32_t>(summed.size());
        summed.push_back(at);
        for (std::int64_t c = 0; c < columns; c++) sums.push_back(static_cast<float>(old[c]));
      }
      float* const sum = sums.data() + number * columns;
      for (std::int64_t c = 0; c < columns; c++) sum[c] = combined<r>(sum[c], static_cast<float>(update[c]));
    }
    for (std::size_t k = 0; k < summed.size(); k++)
      for (std::int64_t c = 0; c < columns; c++)
        to[static_cast<std::int64_t>(summed[k]) * columns + c] =
            T::nearest(sums[k * static_cast<std::size_t>(columns) + static_cast<std::size_t>(c)]);
  }
};

template <class T> LibraryPlan rounded_once(const LibraryCall& call, const LibraryCall::Item& item) {
  const Shape &x = item.in_shapes[0], &updates = item.in_shapes[2];
  const std::int64_t units = num_elements(x) == 0 || updates[1] == 0 ? 0 : x[0];
  const double cost =
      static_cast<double>(num_elements(updates)) * 2 + static_cast<double>(x[0] * updates[1]) * 20;
  return with_reducer(item.params[1], [&]<Reducer r>() {
    return LibraryPlan(units, cost,
                       RoundedOnce<r, T>{item.in[1], item.in[2], item.out[0], call.in_types[1],
                                         item.params[0], x[1], x[2], updates[1]});
  });
}

/// `x`: the operands before the rows. Pairs of complex numbers are two columns.
template <Reducer r, class T>
LibraryPlan plan_of(const LibraryCall& call, const LibraryCall::Item& item, std::size_t x) {
  const Shape& table = item.out_shapes[0];
  T identity{};
  if (x == 0) {
    const std::uint64_t bits = identity_bits(r, call.in_types[1]);
    identity = read_number<T>(reinterpret_cast<const char*>(&bits));
  }
  const std::int64_t each = is_complex(call.in_types[x + 1]) ? 2 : 1;
  Scatter<r, T> s{item.in[x],
                  item.in[x + 1],
                  item.out[0],
                  call.in_types[x],
                  item.params[0],
                  x > 0,
                  identity,
                  table[0],
                  table[1],
                  table[2] * each,
                  item.in_shapes[x][1],
                  std::min<std::int64_t>(most_parts, ThreadPool::instance().worker_count())};
  const std::int64_t units = s.units(), written = s.updates + (x > 0 ? 0 : s.rows);
  const double cost = static_cast<double>(s.batch) * (static_cast<double>(written * s.columns) * 0.5 +
                                                      static_cast<double>(s.updates * s.blocks()) * 3);
  return {units, cost, std::move(s)};
}

}  // namespace

LibraryPlan plan_scatter(const LibraryCall& call, const LibraryCall::Item& item) {
  const DType index = call.in_types[0], values = call.in_types[1];
  if (!is_integer(index)) refuse_dtype("scatter", index, "rows of an integer dtype");
  return with_number_type("scatter", values, [&]<class T>(T) {
    return with_reducer(item.params[1], [&]<Reducer r>() { return plan_of<r, T>(call, item, 0); });
  });
}

LibraryPlan plan_update_rows(const LibraryCall& call, const LibraryCall::Item& item) {
  const DType t = call.in_types[0], part = part_type(t);
  const bool overwrites = static_cast<Reducer>(item.params[1]) == Reducer::none;
  const auto bits = [](std::size_t bytes) {
    return bytes == 1   ? DType::uint8
           : bytes == 2 ? DType::uint16
           : bytes == 4 ? DType::uint32
                        : DType::uint64;
  };
  const DType number = overwrites || t == DType::bool_ ? bits(itemsize(part)) : part;
  if (is_half(t) && !overwrites)
    return after_copy(item, t,
                      t == DType::float16 ? rounded_once<Half>(call, item) : rounded_once<Brain>(call, item));
  LibraryPlan put = with_number_type("update_rows", number, [&]<class T>(T) {
    if constexpr (std::is_unsigned_v<T>)
      if (overwrites) return plan_of<Reducer::none, T>(call, item, 1);
    return with_reducer(item.params[1], [&]<Reducer r>() { return plan_of<r, T>(call, item, 1); });
  });
  return after_copy(item, t, std::move(put));
}

}  // namespace shardarray
