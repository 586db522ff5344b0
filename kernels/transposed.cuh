// Operands that are contiguous along another axis than the last: a block reads a tile of them along that axis into shared memory, from
// which its lanes take neighbours along the last axis. A tile is a square of points over the two axes.
#pragma once
#include "kernels/elements.cuh"
#include "kernels/loop_table.cuh"

namespace shardarray::device {

inline constexpr std::uint32_t transposed_lanes = printed_threads;  // that share a tile: a block's threads

// On the host a call of the text is a block. SHARDARRAY_TRANSPOSED declares `name`, `bytes` for all lanes together;
// SHARDARRAY_TRANSPOSED_LANES runs the following statement for each lane, without synchronization.
#ifdef __CUDACC__
template <std::uint32_t bytes> SHARDARRAY_DEVICE inline std::byte* transposed_bytes() {
  __shared__ alignas(16) std::byte all[bytes];
  return all;
}
#define SHARDARRAY_TRANSPOSED(name, bytes) std::byte* const name = transposed_bytes<bytes>()
#define SHARDARRAY_TRANSPOSED_LANES(lane) if (const std::uint32_t lane = threadIdx.x; true)
#define SHARDARRAY_TRANSPOSED_SYNC() __syncthreads()
#define SHARDARRAY_ROLLED _Pragma("unroll 1")  // unrolled, addresses would cost registers and so occupancy
#else
#define SHARDARRAY_TRANSPOSED(name, bytes) alignas(16) std::byte name[bytes]
#define SHARDARRAY_TRANSPOSED_LANES(lane) for (std::uint32_t lane = 0; lane < transposed_lanes; lane++)
#define SHARDARRAY_TRANSPOSED_SYNC() static_cast<void>(0)
#define SHARDARRAY_ROLLED
#endif

/// Row pitch of a tile, in elements of `bytes`: padding by a word, or by an element, avoids bank conflicts.
constexpr std::uint32_t transposed_pitch(std::uint32_t bytes, std::uint32_t side) {
  return side + (bytes < 4 ? 4 / bytes : 1);
}

/// How many tiles cover that extent.
template <std::uint32_t side, class Index> SHARDARRAY_DEVICE inline Index tiles_of(Index extent) {
  return (extent + side - 1) / side;
}

/// Reads in accesses of `run` elements, several in flight before the first is stored. Past the last row, and past the last run of a row,
/// these are read again.
template <class T, std::uint32_t side, std::uint32_t run>
SHARDARRAY_DEVICE inline void read_transposed_runs(std::uint32_t lane, Unsigned<T>* to, const std::byte* from,
                                                   std::int64_t stride, std::uint32_t rows,
                                                   std::uint32_t length) {
  using All = Run<Unsigned<T>, run>;
  // As in read_run().
  using Word = std::conditional_t<sizeof(All) % 4 == 0 && sizeof(T) < 4, std::uint32_t, Unsigned<T>>;
  constexpr std::uint32_t words = sizeof(All) / sizeof(Word), in_row = side / run,
                          pitch = transposed_pitch(sizeof(T), side);
  constexpr std::uint32_t step = transposed_lanes / in_row, rounds = step < side ? side / step : 1;  // rows
  constexpr std::uint32_t most = run > 1 ? 4 : 8, at_once = rounds < most ? rounds : most;
  const std::uint32_t at = lane % in_row * run;
  from += (at < length ? at : length - run) * sizeof(T);
  SHARDARRAY_ROLLED
  for (std::uint32_t first = lane / in_row; first < side; first += at_once * step) {
    Run<Word, words> held[at_once];
    for (std::uint32_t k = 0; k < at_once; k++) {
      const std::uint32_t row = first + k * step;
      held[k] = scalar::from_bits<Run<Word, words>>(
          read_run<T, run>(from + (row < rows ? row : rows - 1) * stride));
    }
    for (std::uint32_t k = 0; k < at_once; k++) {
      auto* const there = reinterpret_cast<Word*>(to + (first + k * step) * pitch + at);
      for (std::uint32_t w = 0; w < words; w++) there[w] = held[k].bits[w];
    }
  }
}

/// A lane's share of a tile, of which `rows` rows (one per point along the last axis, `stride` bytes apart) and `length` elements of each
/// exist. In accesses of 16 bytes if alignment allows.
template <class T, std::uint32_t side>
SHARDARRAY_DEVICE inline void read_transposed(std::uint32_t lane, Unsigned<T>* to, const std::byte* from,
                                              std::int64_t stride, std::int64_t rows, std::int64_t length) {
  constexpr std::uint32_t run = 16 / sizeof(T);
  const auto rows_here = static_cast<std::uint32_t>(rows < side ? rows : side),
             length_here = static_cast<std::uint32_t>(length < side ? length : side);
  if (multiples_of<16>(from, stride) && length_here % run == 0)
    read_transposed_runs<T, side, run>(lane, to, from, stride, rows_here, length_here);
  else read_transposed_runs<T, side, 1>(lane, to, from, stride, rows_here, length_here);
}

/// The element at a point of a tile.
template <class T, std::uint32_t side>
SHARDARRAY_DEVICE inline T transposed_element(const Unsigned<T>* tile, std::uint32_t row, std::uint32_t at) {
  return element<T>(tile[row * transposed_pitch(sizeof(T), side) + at]);
}

}  // namespace shardarray::device
