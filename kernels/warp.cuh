// The slots of a warp's lanes in the interpreter.
#pragma once
#include "kernels/arithmetic.cuh"
#include "kernels/lanes.cuh"

namespace shardarray::device {

/// Every lane's slots.
template <int slots> class WarpValues {
 public:
#ifdef __CUDACC__
  SHARDARRAY_DEVICE std::uint64_t* of(std::uint32_t) { return values_; }
#else
  std::uint64_t* of(std::uint32_t lane) { return values_[lane]; }
#endif
  /// Folds a slot over the lanes pairwise, l[i] += l[i + 16], ..., 1; all lanes get lane 0's result.
  SHARDARRAY_DEVICE void fold(std::uint16_t slot, const Instruction& combine) {
#ifdef __CUDACC__
    constexpr unsigned all = 0xffffffff;
    unsigned long long x = values_[slot];
    for (unsigned width = warp_lanes / 2; width > 0; width /= 2)
      x = evaluate(combine, x, __shfl_down_sync(all, x, width), 0);
    values_[slot] = __shfl_sync(all, x, 0);
#else
    for (std::uint32_t width = warp_lanes / 2; width > 0; width /= 2) {
      for (std::uint32_t i = 0; i < width; i++)
        values_[i][slot] = evaluate(combine, values_[i][slot], values_[i + width][slot], 0);
    }
    for (std::uint32_t i = 1; i < warp_lanes; i++) values_[i][slot] = values_[0][slot];
#endif
  }

 private:
#ifdef __CUDACC__
  std::uint64_t values_[slots];
#else
  std::uint64_t values_[warp_lanes][slots];
#endif
};

}  // namespace shardarray::device
