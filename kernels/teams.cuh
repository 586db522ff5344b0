// A team: the 32 lanes that work on one outer point of a printed kernel. On the device a lane is a thread; on the host one call of the text
// is a team, and a region is a loop over its lanes.
//
//   RowTeam     a warp, whose lanes read neighbouring inner points
//   BlockTeam   a block of several warps, each with 32 lanes that work on its own blocks of inner points
//   ColumnTeam  lane k is a thread of warp k; a block of 32 warps has 32 teams, and the threads of a warp read neighbouring outer points.
//               Blocks have column_threads threads, and all of them reach every barrier.
#pragma once
#include "kernels/elements.cuh"
#include "kernels/lanes.cuh"
#include "kernels/loop_table.cuh"

namespace shardarray::device {

#ifdef __CUDACC__
/// Runs the following statement for each lane of the team. Lanes of one region do not synchronize.
#define SHARDARRAY_TEAM_LANES(team, lane) if (const std::uint32_t lane = (team).lane(); (team).takes_part())

template <class T> using LaneWord = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>;
template <class T> SHARDARRAY_DEVICE inline LaneWord<T> lane_word(T x) {
  return static_cast<LaneWord<T>>(scalar::from_bits<Unsigned<T>>(x));
}
template <class T> SHARDARRAY_DEVICE inline T from_word(LaneWord<T> word) {
  return scalar::from_bits<T>(static_cast<Unsigned<T>>(word));
}
template <class T> SHARDARRAY_DEVICE inline T from_lane(T x, unsigned lane) {
  return from_word<T>(__shfl_sync(0xffffffff, lane_word(x), lane));
}
/// Folds a warp's lanes pairwise, l[i] += l[i + 16], ..., 1; all get lane 0's result.
template <class Combine, class T> SHARDARRAY_DEVICE inline T fold_warp(T x) {
  for (unsigned width = warp_lanes / 2; width > 0; width /= 2)
    x = Combine::of(x, from_lane(x, threadIdx.x % warp_lanes + width));
  return from_lane(x, 0);
}

class RowTeam {
 public:
  SHARDARRAY_DEVICE RowTeam(const Grid& g, std::int64_t points)
      : at_(first_point(g) / warp_lanes), step_(point_step(g) / warp_lanes), points_(points) {}
  SHARDARRAY_DEVICE bool works() const { return at_ < points_; }
  SHARDARRAY_DEVICE void next() { at_ += step_; }
  SHARDARRAY_DEVICE std::int64_t point() const { return at_; }
  SHARDARRAY_DEVICE static std::uint32_t lane() { return threadIdx.x % warp_lanes; }
  SHARDARRAY_DEVICE static constexpr bool takes_part() { return true; }
  SHARDARRAY_DEVICE static void sync() { __syncwarp(); }
  template <class Combine, class T> SHARDARRAY_DEVICE static T fold(T x) { return fold_warp<Combine>(x); }
  /// The thread's number in the team, and the team's size.
  SHARDARRAY_DEVICE static std::int64_t rank(std::uint32_t lane) { return lane; }
  SHARDARRAY_DEVICE static std::int64_t threads() { return warp_lanes; }

 private:
  std::int64_t at_;
  const std::int64_t step_, points_;
};

/// Exchanged between the warps of a block.
SHARDARRAY_DEVICE inline unsigned long long* warp_words() {
  __shared__ unsigned long long words[printed_threads / warp_lanes];
  return words;
}

class BlockTeam {
 public:
  SHARDARRAY_DEVICE BlockTeam(const Grid& g, std::int64_t points)
      : at_(g.block), step_(g.blocks), points_(points) {}
  SHARDARRAY_DEVICE bool works() const { return at_ < points_; }
  SHARDARRAY_DEVICE void next() { at_ += step_; }
  SHARDARRAY_DEVICE std::int64_t point() const { return at_; }
  SHARDARRAY_DEVICE static std::uint32_t lane() { return threadIdx.x % warp_lanes; }
  SHARDARRAY_DEVICE static std::uint32_t warp() { return threadIdx.x / warp_lanes; }
  SHARDARRAY_DEVICE static std::uint32_t warps() { return blockDim.x / warp_lanes; }
  SHARDARRAY_DEVICE static constexpr bool takes_part() { return true; }
  SHARDARRAY_DEVICE static void sync() { __syncthreads(); }
  template <class Combine, class T> SHARDARRAY_DEVICE static T fold(T x) { return fold_warp<Combine>(x); }
  template <class T> SHARDARRAY_DEVICE static LaneWord<T>* words() {
    return reinterpret_cast<LaneWord<T>*>(warp_words());
  }
  SHARDARRAY_DEVICE static std::int64_t rank(std::uint32_t) { return threadIdx.x; }
  SHARDARRAY_DEVICE static std::int64_t threads() { return blockDim.x; }

 private:
  std::int64_t at_;
  const std::int64_t step_, points_;
};

/// The lanes' values of a block's columns, padded against bank conflicts, and a result for each column.
SHARDARRAY_DEVICE inline unsigned long long* column_words() {
  __shared__ unsigned long long words[warp_lanes * (warp_lanes + 1) + warp_lanes];
  return words;
}

class ColumnTeam {
 public:
  SHARDARRAY_DEVICE ColumnTeam(const Grid& g, std::int64_t points)
      : first_(static_cast<std::int64_t>(g.block) * warp_lanes),
        step_(static_cast<std::int64_t>(g.blocks) * warp_lanes),
        points_(points) {}
  /// Uniform across the block.
  SHARDARRAY_DEVICE bool works() const { return first_ < points_; }
  SHARDARRAY_DEVICE void next() { first_ += step_; }
  /// Threads without a point compute the last one, and do not write.
  SHARDARRAY_DEVICE std::int64_t point() const { return takes_part() ? first_ + column() : points_ - 1; }
  SHARDARRAY_DEVICE static std::uint32_t lane() { return threadIdx.x / warp_lanes; }
  SHARDARRAY_DEVICE bool takes_part() const { return first_ + column() < points_; }
  SHARDARRAY_DEVICE static void sync() { __syncthreads(); }
  /// Warp k folds the lanes of column k.
  template <class Combine, class T> SHARDARRAY_DEVICE static T fold(T x) {
    auto* const words = reinterpret_cast<LaneWord<T>*>(column_words());
    constexpr std::uint32_t gap = warp_lanes + 1;
    auto* const results = words + warp_lanes * gap;
    __syncthreads();  // all have read the results of the previous fold, whose words may have another size
    words[lane() * gap + column()] = lane_word(x);
    __syncthreads();
    const T folded = fold_warp<Combine>(from_word<T>(words[column() * gap + lane()]));
    if (column() == 0) results[lane()] = lane_word(folded);
    __syncthreads();
    return from_word<T>(results[column()]);
  }
  SHARDARRAY_DEVICE static std::int64_t rank(std::uint32_t lane) { return lane; }
  SHARDARRAY_DEVICE static std::int64_t threads() { return warp_lanes; }

 private:
  SHARDARRAY_DEVICE static std::uint32_t column() { return threadIdx.x % warp_lanes; }
  std::int64_t first_;
  const std::int64_t step_, points_;
};
#else
#define SHARDARRAY_TEAM_LANES(team, lane) for (std::uint32_t lane = 0; lane < warp_lanes; lane++)

class RowTeam {
 public:
  RowTeam(const Grid& g, std::int64_t points)
      : at_(first_point(g) / warp_lanes), step_(point_step(g) / warp_lanes), points_(points) {}
  bool works() const { return at_ < points_; }
  void next() { at_ += step_; }
  std::int64_t point() const { return at_; }
  static void sync() {}
  static std::int64_t rank(std::uint32_t lane) { return lane; }
  static std::int64_t threads() { return warp_lanes; }

 protected:
  RowTeam(std::int64_t at, std::int64_t step, std::int64_t points) : at_(at), step_(step), points_(points) {}

 private:
  std::int64_t at_;
  const std::int64_t step_, points_;
};
using ColumnTeam = RowTeam;
class BlockTeam : public RowTeam {
 public:
  BlockTeam(const Grid& g, std::int64_t points)
      : RowTeam(g.thread == 0 ? g.block : points, g.blocks, points) {}  // the first call is the block
  static std::int64_t warp() { return 0; }
  static std::int64_t warps() { return 1; }
};
#endif

/// Written by one lane, after all lanes have done their reads.
template <class Team, class T>
SHARDARRAY_DEVICE inline void write_once([[maybe_unused]] const Team& team, std::byte* p, T x) {
  team.sync();
  SHARDARRAY_TEAM_LANES(team, lane) {
    if (team.rank(lane) == 0) write(p, x);
  }
}

}  // namespace shardarray::device
