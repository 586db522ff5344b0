// Prefix scans of lines.
#include <algorithm>
#include <limits>

#include "base/ceil_div.h"
#include "cpu/address.h"
#include "cpu/library/combined.h"
#include "cpu/library/library_call.h"
#include "runtime/evaluate_instruction.h"
#include "runtime/lines.h"
#include "runtime/scalar.h"

namespace shardarray {
namespace {

/// The reduction of the blocks so far; for float sums, also the rounding errors.
template <Reducer r, class T> struct Carry {
  static constexpr bool rounds = std::is_floating_point_v<T> && r == Reducer::sum;
  T total{}, lost{};

  T with(T local) const {
    if constexpr (rounds) return total + (local + lost);
    else return combined<r>(total, local);
  }
  void add(T block) {
    if constexpr (rounds) {
      const T off = scalar::rounded_off(total, block + lost);
      total = with(block);
      lost = scalar::abs(off) <= std::numeric_limits<T>::max() ? off : T{};
    } else {
      total = combined<r>(total, block);
    }
  }
};

/// Lines of `length` elements with stride `inner`.
template <Reducer r, class T> struct Scan {
  LibraryCall::Item item;
  std::int64_t lines, length, inner, step;
  T identity;

  // Units: neighbouring lines, consecutive or interleaved.
  static constexpr std::int64_t rows_each = 16, columns_each = 256;
  std::int64_t columns() const { return ceil_div(inner, columns_each); }
  std::int64_t units() const {
    return inner == 1 ? ceil_div(lines, rows_each) : lines == 0 ? 0 : lines / inner * columns();
  }

  void operator()(void* const* bases, std::int64_t begin, std::int64_t end) const {
    const auto* const x = reinterpret_cast<const T*>(address(bases, item.in[0]));
    auto* const y = reinterpret_cast<T*>(address(bases, item.out[0]));
    auto* const totals = item.out.size() > 1 ? reinterpret_cast<T*>(address(bases, item.out[1])) : nullptr;
    const std::int64_t start = step < 0 ? length - 1 : 0;
    for (std::int64_t u = begin; u < end; u++) {
      if (inner == 1) {
        const std::int64_t last = std::min(lines, (u + 1) * rows_each);
        for (std::int64_t line = u * rows_each; length > 0 && line < last;)
          line += scan_rows(x, y, line, last);
        for (std::int64_t line = u * rows_each; totals && line < last; line++)
          totals[line] = length > 0 ? y[line * length + (step < 0 ? 0 : length - 1)] : identity;
      } else {
        const std::int64_t column = u % columns() * columns_each, line = u / columns() * inner + column,
                           count = std::min(columns_each, inner - column),
                           first = (u / columns() * length + start) * inner + column;
        Carry<r, T> state[columns_each];
        for (std::int64_t c = 0; c < count; c++) state[c].total = identity;
        if (length > 0) scan_columns(x + first, y + first, count, state);
        const std::int64_t final_row = (u / columns() * length + length - 1 - start) * inner + column;
        for (std::int64_t c = 0; totals && c < count; c++)
          totals[line + c] = length > 0 ? y[final_row + c] : identity;
      }
    }
  }

 private:
  static constexpr int together = 4;  // independent dependency chains in flight

  // Scans one line several blocks at a time, or several short lines; returns the number of lines.
  std::int64_t scan_rows(const T* x, T* y, std::int64_t line, std::int64_t last) const {
    const std::int64_t start = line * length + (step < 0 ? length - 1 : 0);
    x += start;
    y += start;
    if (length <= scan_block && last - line >= together) {
      chains<together>(x, y, length, length);
      for (int k = 0; k < together; k++) add_carries(y + k * length, length, {identity});
      return together;
    }
    Carry<r, T> state{identity};
    for (std::int64_t at = 0; at < length;) {
      const bool all = length - at >= together * scan_block;
      const std::int64_t count = all ? together * scan_block : std::min(scan_block, length - at);
      if (all) chains<together>(x + at * step, y + at * step, scan_block, scan_block * step);
      else chains<1>(x + at * step, y + at * step, count, 0);
      state = add_carries(y + at * step, count, state);
      at += count;
    }
    return 1;
  }
  // `count` scans of `size` elements whose starts are `apart` elements apart.
  template <int count> void chains(const T* x, T* y, std::int64_t size, std::int64_t apart) const {
    T local[count];
    std::fill_n(local, count, identity);
    for (std::int64_t i = 0; i < size; i++)
      for (int k = 0; k < count; k++) {
        const std::int64_t at = k * apart + i * step;
        y[at] = local[k] = combined<r>(local[k], x[at]);
      }
  }
  // Combines blocks with the carry `state`; returns the carry after them.
  Carry<r, T> add_carries(T* y, std::int64_t count, Carry<r, T> state) const {
    for (std::int64_t at = 0; at < count; at += scan_block) {
      const std::int64_t size = std::min(scan_block, count - at);
      const Carry<r, T> before = state;
      T* const block = y + at * step;
      state.add(block[(size - 1) * step]);
      T* const low = step < 0 ? block - (size - 1) : block;
      for (std::int64_t i = 0; i < size; i++) low[i] = before.with(low[i]);
    }
    return state;
  }

  void scan_columns(const T* x, T* y, std::int64_t count, Carry<r, T>* state) const {
    T local[columns_each];
    for (std::int64_t i = 0; i < length; i++, x += step * inner, y += step * inner) {
      if (i % scan_block == 0) {
        for (std::int64_t c = 0; c < count; c++) {
          if (i > 0) state[c].add(local[c]);
          local[c] = identity;
        }
      }
      for (std::int64_t c = 0; c < count; c++) {
        local[c] = combined<r>(local[c], x[c]);
        y[c] = state[c].with(local[c]);
      }
    }
  }
};

template <Reducer r, class T> LibraryPlan scan_plan(const LibraryCall::Item& item, DType t) {
  // An empty line, too, may be asked for its total.
  const auto [lines, length, inner] = lines_along(item.in_shapes[0], item.params[0]);
  const std::uint64_t bits = identity_bits(r, t);
  const auto identity = read_number<T>(reinterpret_cast<const char*>(&bits));
  Scan<r, T> s{item, lines, length, inner, item.params[2], identity};
  const std::int64_t units = s.units();
  return {units, static_cast<double>(lines * length) * 0.5, std::move(s)};
}

}  // namespace

LibraryPlan plan_scan(const LibraryCall& call, const LibraryCall::Item& item) {
  return with_number_type("scan", call.in_types[0], [&]<class T>(T) {
    return with_reducer(item.params[1], [&]<Reducer r>() { return scan_plan<r, T>(item, call.in_types[0]); });
  });
}

}  // namespace shardarray
