// Rows that a team keeps in shared memory: what several stages read is loaded from memory once.
#pragma once
#include "kernels/teams.cuh"

namespace shardarray::device {

// SHARDARRAY_KEPT_ROWS declares `name`, `bytes` of shared memory for the thread's team. `teams`: at most so many per block (its warps, or
// 1).
#ifdef __CUDACC__
template <std::uint32_t bytes> SHARDARRAY_DEVICE inline std::byte* kept_bytes() {
  __shared__ alignas(16) std::byte all[bytes];
  return all;
}
#define SHARDARRAY_KEPT_ROWS(name, bytes, teams) \
  std::byte* const name =                        \
      kept_bytes<(bytes) * (teams)>() + ((teams) > 1 ? threadIdx.x / warp_lanes * (bytes) : 0)
#else
#define SHARDARRAY_KEPT_ROWS(name, bytes, teams) alignas(16) std::byte name[bytes]
#endif

/// Reads a row, in accesses of 16 bytes if it is aligned, several in flight. Afterwards the whole team sees all of it.
template <class T, class Team>
SHARDARRAY_DEVICE inline void keep_row([[maybe_unused]] const Team& team, Unsigned<T>* to,
                                       const std::byte* row, std::int64_t points) {
  using Bits = Unsigned<T>;
  constexpr std::int64_t run = 16 / sizeof(T), size = sizeof(T), together = 4;
  using Access = Run<Bits, run>;
  const std::int64_t in_runs = multiples_of<16>(row) ? points - points % run : 0;
  SHARDARRAY_TEAM_LANES(team, lane) {
    const std::int64_t step = team.threads() * run;
    std::int64_t j = team.rank(lane) * run;
    for (; j + (together - 1) * step < in_runs; j += together * step) {
      Access part[together];
      for (std::int64_t k = 0; k < together; k++) part[k] = read_run<T, run>(row + (j + k * step) * size);
      for (std::int64_t k = 0; k < together; k++) *reinterpret_cast<Access*>(to + j + k * step) = part[k];
    }
    for (; j < in_runs; j += step) *reinterpret_cast<Access*>(to + j) = read_run<T, run>(row + j * size);
    for (j = in_runs + team.rank(lane); j < points; j += team.threads()) to[j] = read<Bits>(row + j * size);
  }
  team.sync();
}

}  // namespace shardarray::device
