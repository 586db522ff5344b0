// Sorts of long lines, stable: by 8 bits of the keys after the other, the lowest first. Entries are as sort.cuh's, and go from one
// memory to the other with each 8 bits, in three launches:
//   count    how often each of 256 values stands in a tile: a warp a tile
//   offsets  of each value, how many of its entries stand in the tiles before: a warp a value of a line
//   place    entries to where they belong: a warp a tile, in its order
// `keys` before them writes the entries.
#pragma once
#include "kernels/lanes.cuh"
#include "kernels/sort.cuh"

namespace shardarray::device {

inline constexpr std::int64_t radix_tile = 2048;  // entries
inline constexpr std::uint32_t radix_values = 256;
inline constexpr std::uint32_t radix_warps = 8;  // of a block, at most

struct RadixItem {
  SortItem lines;
  std::int64_t tiles;  ///< of a line
  std::uint64_t counts,
      totals;  ///< bytes into scratch memory: std::uint32_t by line, value and tile; by line and value
};
struct RadixTable {
  List<RadixItem> items;
  std::uint32_t side, shift;  ///< which `entries` are read; the bits
  DType key, unused[7];
};

/// A number for each value, of one warp.
class WarpCounts {
 public:
#ifdef __CUDACC__
  SHARDARRAY_DEVICE WarpCounts() : counts_(all() + threadIdx.x / warp_lanes * radix_values) {}
  SHARDARRAY_DEVICE void add(std::uint32_t value) { atomicAdd(&counts_[value], 1u); }
  /// The number of `value` before this lane's entry is counted, where lanes count in their order. Whoever has none (`active` is
  /// false) is asked too.
  SHARDARRAY_DEVICE std::uint32_t take(std::uint32_t value, bool active, std::uint32_t lane) {
    const unsigned here = __ballot_sync(0xffffffff, active);
    unsigned same = here;
    for (std::uint32_t bit = 0; bit < 8; bit++) {
      const unsigned set = __ballot_sync(0xffffffff, (value >> bit & 1) != 0);
      same &= (value >> bit & 1) != 0 ? set : ~set;
    }
    const unsigned before = same & ((1u << lane) - 1);
    const std::uint32_t first = active ? counts_[value] : 0;
    __syncwarp();
    if (active && before == 0) counts_[value] = first + static_cast<std::uint32_t>(__popc(same));
    __syncwarp();
    return first + static_cast<std::uint32_t>(__popc(before));
  }
#else
  void add(std::uint32_t value) { counts_[value]++; }
  std::uint32_t take(std::uint32_t value, bool active, std::uint32_t) {
    return active ? counts_[value]++ : 0;
  }
#endif
  SHARDARRAY_DEVICE std::uint32_t& operator[](std::uint32_t value) { return counts_[value]; }

 private:
#ifdef __CUDACC__
  SHARDARRAY_DEVICE static std::uint32_t* all() {
    __shared__ std::uint32_t counts[radix_warps * radix_values];
    return counts;
  }
  std::uint32_t* const counts_;
#else
  std::uint32_t counts_[radix_values];
#endif
};

/// What a lane has, added up over the lanes before it; `total`: over all of them.
SHARDARRAY_DEVICE inline void add_up_lanes(std::uint32_t (&x)[lanes_here], std::uint32_t& total) {
#ifdef __CUDACC__
  const unsigned lane = threadIdx.x % warp_lanes;
  std::uint32_t sum = x[0];
  for (unsigned by = 1; by < warp_lanes; by *= 2) {
    const std::uint32_t other = __shfl_sync(0xffffffff, sum, lane - by);
    if (lane >= by) sum += other;
  }
  total = __shfl_sync(0xffffffff, sum, warp_lanes - 1);
  x[0] = sum - x[0];
#else
  total = 0;
  for (std::uint32_t& n : x) {
    const std::uint32_t mine = n;
    n = total;
    total += mine;
  }
#endif
}

/// Calls f(line, number) for the warp's share of `each` things of all lines.
template <class F>
SHARDARRAY_DEVICE inline void for_warps(const Grid& g, const RadixItem& r, std::int64_t each, const F& f) {
  const std::int64_t step = point_step(g) / warp_lanes;
  for (std::int64_t w = first_point(g) / warp_lanes; w < r.lines.lines * each; w += step)
    f(w / each, w % each);
}
SHARDARRAY_DEVICE inline std::uint32_t radix_value(const RadixTable& t, const SortEntry& e) {
  return static_cast<std::uint32_t>(e.key >> t.shift) & (radix_values - 1);
}
SHARDARRAY_DEVICE inline std::int64_t radix_tile_end(const RadixItem& r, std::int64_t tile) {
  const std::int64_t end = (tile + 1) * radix_tile;
  return end < r.lines.length ? end : r.lines.length;
}
SHARDARRAY_DEVICE inline std::uint32_t* radix_counts(const RadixItem& r, std::byte* scratch,
                                                     std::int64_t line, std::uint32_t value) {
  return reinterpret_cast<std::uint32_t*>(scratch + r.counts) + (line * radix_values + value) * r.tiles;
}
SHARDARRAY_DEVICE inline std::uint32_t* radix_totals(const RadixItem& r, std::byte* scratch,
                                                     std::int64_t line) {
  return reinterpret_cast<std::uint32_t*>(scratch + r.totals) + line * radix_values;
}

SHARDARRAY_DEVICE inline void radix_keys(const Grid& g, const std::byte* table, std::byte* scratch,
                                         const Bases& bases) {
  const RadixTable& t = *reinterpret_cast<const RadixTable*>(table);
  const SortItem& s = entries(table, t.items)[g.item].lines;
  const SortColumn& keys = *entries(table, s.columns);
  const std::byte* const in = address_of(bases, keys.in);
  SortEntry* const out = sort_entries(s, scratch, 0);
  for (std::int64_t at = first_point(g); at < s.lines * s.length; at += point_step(g)) {
    const std::int64_t line = at / s.length, i = at % s.length;
    out[at] = {sort_key_at(t.key, keys.bytes, in + sorted_element(s, line, i) * keys.bytes), i};
  }
}

SHARDARRAY_DEVICE inline void radix_count(const Grid& g, const std::byte* table, std::byte* scratch,
                                          const Bases&) {
  const RadixTable& t = *reinterpret_cast<const RadixTable*>(table);
  const RadixItem& r = entries(table, t.items)[g.item];
  WarpCounts counts;
  for_warps(g, r, r.tiles, [&](std::int64_t line, std::int64_t tile) {
    const SortEntry* const from = sort_entries(r.lines, scratch, t.side) + line * r.lines.length;
    const std::int64_t end = radix_tile_end(r, tile);
    SHARDARRAY_LANES(lane) for (std::uint32_t v = lane; v < radix_values; v += warp_lanes) counts[v] = 0;
    SHARDARRAY_SYNC_LANES();
    SHARDARRAY_LANES(lane)
    for (std::int64_t i = tile * radix_tile + lane; i < end; i += warp_lanes)
      counts.add(radix_value(t, from[i]));
    SHARDARRAY_SYNC_LANES();
    SHARDARRAY_LANES(lane)
    for (std::uint32_t v = lane; v < radix_values; v += warp_lanes)
      radix_counts(r, scratch, line, v)[tile] = counts[v];
    SHARDARRAY_SYNC_LANES();
  });
}

SHARDARRAY_DEVICE inline void radix_offsets(const Grid& g, const std::byte* table, std::byte* scratch,
                                            const Bases&) {
  const RadixTable& t = *reinterpret_cast<const RadixTable*>(table);
  const RadixItem& r = entries(table, t.items)[g.item];
  for_warps(g, r, radix_values, [&](std::int64_t line, std::int64_t value) {
    std::uint32_t* const counts = radix_counts(r, scratch, line, static_cast<std::uint32_t>(value));
    std::uint32_t before = 0;
    for (std::int64_t first = 0; first < r.tiles; first += warp_lanes) {
      std::uint32_t mine[lanes_here], sum = 0;
      SHARDARRAY_LANES(lane) mine[lane % lanes_here] = first + lane < r.tiles ? counts[first + lane] : 0;
      add_up_lanes(mine, sum);
      SHARDARRAY_LANES(lane)
      if (first + lane < r.tiles) counts[first + lane] = before + mine[lane % lanes_here];
      before += sum;
    }
    SHARDARRAY_LANES(lane) if (lane == 0) radix_totals(r, scratch, line)[value] = before;
  });
}

SHARDARRAY_DEVICE inline void radix_place(const Grid& g, const std::byte* table, std::byte* scratch,
                                          const Bases&) {
  const RadixTable& t = *reinterpret_cast<const RadixTable*>(table);
  const RadixItem& r = entries(table, t.items)[g.item];
  WarpCounts next;  // where the next entry of each value goes
  for_warps(g, r, r.tiles, [&](std::int64_t line, std::int64_t tile) {
    const SortEntry* const from = sort_entries(r.lines, scratch, t.side) + line * r.lines.length;
    SortEntry* const to = sort_entries(r.lines, scratch, 1 - t.side) + line * r.lines.length;
    const std::uint32_t* const totals = radix_totals(r, scratch, line);
    std::uint32_t before = 0;  // entries of smaller values
    for (std::uint32_t first = 0; first < radix_values; first += warp_lanes) {
      std::uint32_t mine[lanes_here], sum = 0;
      SHARDARRAY_LANES(lane) mine[lane % lanes_here] = totals[first + lane];
      add_up_lanes(mine, sum);
      SHARDARRAY_LANES(lane)
      next[first + lane] =
          before + mine[lane % lanes_here] + radix_counts(r, scratch, line, first + lane)[tile];
      before += sum;
    }
    SHARDARRAY_SYNC_LANES();
    const std::int64_t end = radix_tile_end(r, tile);
    for (std::int64_t first = tile * radix_tile; first < end; first += warp_lanes) {
      SHARDARRAY_LANES(lane) {
        const bool active = first + lane < end;
        const SortEntry e = active ? from[first + lane] : SortEntry{0, 0};
        const std::uint32_t place = next.take(radix_value(t, e), active, lane);
        if (active) to[place] = e;
      }
    }
    SHARDARRAY_SYNC_LANES();
  });
}

}  // namespace shardarray::device
