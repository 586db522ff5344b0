// The support code of printed kernels (src/cuda/printer.h): items, elements, sums. Every printed text includes it, also where the only
// standard library is a few small headers.
//
// A printed kernel reads the same table as an interpreting one and does the same, in straight-line code on typed values.
#pragma once
#include "kernels/elements.cuh"
#include "kernels/halves.cuh"
#include "kernels/kept_rows.cuh"
#include "kernels/lanes.cuh"
#include "kernels/loop_table.cuh"
#include "kernels/ordinary.cuh"
#include "kernels/teams.cuh"
#include "kernels/transposed.cuh"

namespace shardarray::device {

/// A row of the argument's indirect dimension, 0 if this item does not have it.
template <class T>
SHARDARRAY_DEVICE inline T read_row(const LoopArgument& arg, const std::byte* p, std::int64_t row) {
  if (row < arg.lo || row - arg.lo >= arg.count) return T{0};
  return read<T>(p + (row - arg.lo) * arg.row_stride);
}

/// The item that a thread works on. Printed texts are templates over this and its replacement (known_items.cuh).
class PrintedItem {
 public:
  SHARDARRAY_DEVICE PrintedItem(const Grid& g, const std::byte* table, const Bases& bases)
      : PrintedItem(*reinterpret_cast<const LoopTable*>(table), g, table, bases) {}

  const std::int64_t outer_points, inner_points;
  const std::int64_t block;  ///< inner points after which lanes are combined

  SHARDARRAY_DEVICE const LoopArgument& argument(std::uint32_t a) const { return arguments_[a]; }
  SHARDARRAY_DEVICE std::byte* place(std::uint32_t a) const {
    return address_of(bases_, arguments_[a].address);
  }
  /// An index's value at domain point 0.
  SHARDARRAY_DEVICE std::int64_t start(std::uint32_t a) const {
    return static_cast<std::int64_t>(arguments_[a].address.offset);
  }
  SHARDARRAY_DEVICE std::int64_t extent(std::uint32_t axis) const { return extents_[axis]; }
  /// `number`: argument * axes + axis.
  SHARDARRAY_DEVICE std::int64_t stride(std::uint32_t number) const { return strides_[number]; }

 private:
  SHARDARRAY_DEVICE PrintedItem(const LoopTable& t, const Grid& g, const std::byte* table, const Bases& bases)
      : PrintedItem(entries(table, t.items)[g.item], t.block, table, bases) {}
  SHARDARRAY_DEVICE PrintedItem(const LoopItem& item, std::int64_t b, const std::byte* table,
                                const Bases& bases)
      : outer_points(item.outer_points),
        inner_points(item.inner_points),
        block(b),
        arguments_(reinterpret_cast<const LoopArgument*>(table + item.arguments)),
        extents_(reinterpret_cast<const std::int64_t*>(table + item.extents)),
        strides_(reinterpret_cast<const std::int64_t*>(table + item.strides)),
        bases_(bases) {}

  const LoopArgument* arguments_;
  const std::int64_t *extents_, *strides_;
  const Bases& bases_;
};

// What combines two lanes: one struct per reducer.
struct Sum {
  template <class T> static SHARDARRAY_DEVICE T of(T a, T b) { return scalar::add(a, b); }
};
struct Prod {
  template <class T> static SHARDARRAY_DEVICE T of(T a, T b) { return scalar::mul(a, b); }
};
struct Max {
  template <class T> static SHARDARRAY_DEVICE T of(T a, T b) { return scalar::max(a, b); }
};
struct Min {
  template <class T> static SHARDARRAY_DEVICE T of(T a, T b) { return scalar::min(a, b); }
};
struct Any {
  static SHARDARRAY_DEVICE bool of(bool a, bool b) { return scalar::or_(a, b); }
};
struct All {
  static SHARDARRAY_DEVICE bool of(bool a, bool b) { return scalar::and_(a, b); }
};

/// Calls f with the inner points first, first + step, ...: `together` of them unrolled, so that their loads are issued before they are
/// needed.
template <int together, class Number, class F>
SHARDARRAY_DEVICE inline void each_inner_point(Number first, Number stop, Number step, const F& f) {
#ifdef __CUDACC__
  for (; stop - first > (together - 1) * step; first += together * step) {
    _Pragma("unroll") for (int k = 0; k < together; k++) f(first + k * step);
  }
#endif
  SHARDARRAY_POINTS
  for (; first < stop; first += step) f(first);
}

/// A team's reduction over inner points, in the order of kernel.h.
template <class T, class Combine, class Team> class LaneReduction {
 public:
  template <class Item>
  SHARDARRAY_DEVICE LaneReduction(const Item& item, T identity)
      : has_blocks_(item.inner_points > item.block), identity_(identity), total_(identity) {
    open_block();
  }
  SHARDARRAY_DEVICE void open_block() {
    for (std::uint32_t k = 0; k < lanes_here; k++) lanes_[k] = identity_;
  }
  SHARDARRAY_DEVICE void take(std::uint32_t lane, T x) {
    T& mine = lanes_[lane % lanes_here];
    mine = Combine::of(mine, x);
  }
  SHARDARRAY_DEVICE void close_block([[maybe_unused]] const Team& team) {
    fold(team);
    add_block();
  }
  /// After one block per warp of the team; the first of them begins at inner point `round`.
  template <class Item>
  SHARDARRAY_DEVICE void close_round([[maybe_unused]] const Item& item, const Team& team,
                                     [[maybe_unused]] std::int64_t round) {
#ifdef __CUDACC__
    fold(team);
    LaneWord<T>* const all = team.template words<T>();
    if (Team::lane() == 0) all[team.warp()] = lane_word(lanes_[0]);
    team.sync();
    for (std::uint32_t k = 0; k < team.warps() && round < item.inner_points; k++, round += item.block) {
      lanes_[0] = from_word<T>(all[k]);
      add_block();
    }
    team.sync();
#else
    close_block(team);
#endif
  }
  /// With one block its result is the total.
  SHARDARRAY_DEVICE T result() const {
    if (!has_blocks_) return lanes_[0];
    if constexpr (compensated) return scalar::with_rounded_off(total_, lost_);
    else return total_;
  }

 private:
  static constexpr bool compensated = std::is_same_v<Combine, Sum> && std::is_floating_point_v<T>;

  SHARDARRAY_DEVICE void add_block() {
    if (!has_blocks_) return;
    if constexpr (compensated) lost_ = Combine::of(lost_, scalar::rounded_off(total_, lanes_[0]));
    total_ = Combine::of(total_, lanes_[0]);
  }
  /// Pairwise, l[i] += l[i + 16], ..., 1; on the device all lanes get lane 0's result.
  SHARDARRAY_DEVICE void fold([[maybe_unused]] const Team& team) {
#ifdef __CUDACC__
    lanes_[0] = team.template fold<Combine>(lanes_[0]);
#else
    for (std::uint32_t width = warp_lanes / 2; width > 0; width /= 2) {
      for (std::uint32_t i = 0; i < width; i++) lanes_[i] = Combine::of(lanes_[i], lanes_[i + width]);
    }
#endif
  }

  const bool has_blocks_;
  const T identity_;
  T lanes_[lanes_here], total_, lost_{0};
};

// A text as a kernel; `most`: threads of a block; `multiprocessor_blocks`: minimum blocks per multiprocessor; `together`: threads that one
// host call runs.
#ifdef SHARDARRAY_PROGRAM_BASES
// program.cuh makes it a step.
#elif defined(__CUDACC__)
#define SHARDARRAY_PRINTED(name, text, most, multiprocessor_blocks, together)                             \
  extern "C" __global__ void __launch_bounds__(most, multiprocessor_blocks)                               \
      name(const std::byte* table, std::byte*, const __grid_constant__ shardarray::device::Bases bases) { \
    wait_for_kernel_before(table);                                                                        \
    const Grid grid{blockIdx.x, gridDim.x, blockIdx.y, threadIdx.x, blockDim.x};                          \
    text<PrintedItem>(grid, table, bases);                                                                \
  }
#else
#define SHARDARRAY_PRINTED(name, text, most, blocks, together)                                           \
  extern "C" void name(const Grid& grid, const std::byte* table, std::byte*, const Bases& bases) {       \
    Grid g = grid;                                                                                       \
    for (g.thread = 0; g.thread < g.threads; g.thread += (together)) text<PrintedItem>(g, table, bases); \
  }
#endif

}  // namespace shardarray::device
