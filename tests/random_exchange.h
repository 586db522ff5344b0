// Random exchanges: boxes in any order and direction, with gaps, from any number of sources.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>

#include "cuda_launches.h"

namespace shardarray::test {

/// A box of a tile: extents, strides of one of its orders, the first element.
struct StridedBox {
  Shape strides;
  std::int64_t first = 0;
};
/// Strides that give every element of `extents` its own place, perhaps backwards; returns the elements that they reach.
inline StridedBox random_box(Random& r, const Shape& extents, std::int64_t& reach) {
  StridedBox b;
  b.strides = Shape::filled(extents.size(), 0);
  std::int64_t next = 1;
  const bool turned = pick(r, 4) == 0;
  for (std::size_t k = 0; k < extents.size(); k++) {
    const std::size_t d = turned ? k : extents.size() - 1 - k;
    b.strides[d] = next;
    next *= extents[d];
    if (pick(r, 4) == 0) next += pick(r, 3);
    if (pick(r, 6) != 0) continue;
    b.first += b.strides[d] * (extents[d] - 1);
    b.strides[d] = -b.strides[d];
  }
  reach = next;
  return b;
}

inline bool takes(Reducer reducer, DType t) {
  if (reducer == Reducer::none) return true;
  if (reducer == Reducer::any) return itemsize(t) <= 8;
  if (t == bool_) return reducer == Reducer::max || reducer == Reducer::min || reducer == Reducer::all;
  return reducer != Reducer::all && t != float16 && t != bfloat16 && !is_complex(t);
}

struct RandomExchange {
  Exchange exchange;
  Memory memory;  // one tile to a base, all of the exchange's dtype
};
inline RandomExchange random_exchange(Random& r, DType t, Reducer reducer) {
  Exchange x;
  x.dtype = t;
  x.reducer = reducer;
  const auto size = static_cast<std::uint64_t>(itemsize(t));
  if (t == bool_) x.fill_bits = 1;
  else x.fill_bits = size >= 8 ? r() : r() & ((std::uint64_t{1} << (8 * size)) - 1);
  Memory memory;
  for (std::int64_t n = 1 + pick(r, 3), i = 0; i < n; i++) {
    Exchange::Item item;
    const auto dst = static_cast<std::uint32_t>(memory.size());
    memory.emplace_back();
    item.dst = {dst, 0};
    item.fill = pick(r, 2) == 0;
    std::int64_t elements = pick(r, 3);
    for (std::int64_t pieces = pick(r, 4); pieces > 0; pieces--) {
      Exchange::Piece p;
      for (std::int64_t d = pick(r, 4); d > 0; d--)
        p.extents.push_back(pick(r, 12) == 0 ? 0 : 1 + pick(r, 9));
      std::int64_t reach = 0, source_reach = 0;
      const StridedBox to = random_box(r, p.extents, reach), from = random_box(r, p.extents, source_reach);
      p.dst_strides = to.strides;
      p.src_strides = from.strides;
      p.dst = {dst, static_cast<std::uint64_t>(elements + std::max<std::int64_t>(to.first, 0)) * size};
      elements += reach + pick(r, 3);
      for (std::int64_t s = reducer == Reducer::none ? 1 : pick(r, 11); s > 0; s--) {
        const auto base = static_cast<std::uint32_t>(memory.size());
        memory.push_back(random_elements(r, t, source_reach + 3));
        p.sources.push_back(
            {{base, static_cast<std::uint64_t>(std::max<std::int64_t>(from.first, 0)) * size}, 0, 0, 0});
      }
      item.pieces.push_back(p);
    }
    memory[dst] = random_elements(r, t, elements);
    item.dst_bytes = static_cast<std::uint64_t>(elements) * size;
    x.items.push_back(item);
  }
  return {std::move(x), std::move(memory)};
}

inline constexpr DType all_types[] = {bool_,    int8,    int16,   int32,     int64,
                                      uint8,    uint16,  uint32,  uint64,    float16,
                                      bfloat16, float32, float64, complex64, complex128};
inline constexpr Reducer all_reducers[] = {Reducer::none, Reducer::sum, Reducer::max, Reducer::min,
                                           Reducer::prod, Reducer::any, Reducer::all};

}  // namespace shardarray::test
