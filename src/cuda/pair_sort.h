// A stable sort of pairs by key, by CUB (DeviceRadixSort of CUDA's toolkit; kernels/sort_pairs.cu).
#pragma once
#include <cstddef>
#include <cstdint>

namespace shardarray::cuda {

/// `count` pairs (below 2^32) of a key and a 32-bit value, in a run's scratch memory. 0: no sort.
struct PairSort {
  std::int64_t count = 0;
  std::uint32_t key_bytes = 4;  ///< per key: 4 or 8
  std::uint32_t bits = 32;      ///< low bits to sort by; higher ones are zero
  std::uint64_t keys = 0, values = 0, sorted_keys = 0, sorted_values = 0;  ///< offsets in the memory
};

}  // namespace shardarray::cuda
