// A stable sort of pairs by their keys, which CUB does (DeviceRadixSort of CUDA's toolkit; kernels/sort_pairs.cu).
#pragma once
#include <cstddef>
#include <cstdint>

namespace shardarray::cuda {

/// So many pairs of a key and a 32-bit value, less than 2^32, in the scratch memory of a run. 0: there is none.
struct PairSort {
  std::int64_t count = 0;
  std::uint32_t key_bytes = 4;  ///< of a key: 4 or 8
  std::uint32_t bits = 32;      ///< of keys, the lowest ones: those above are zero
  std::uint64_t keys = 0, values = 0, sorted_keys = 0, sorted_values = 0;  ///< bytes into the memory
};

}  // namespace shardarray::cuda
