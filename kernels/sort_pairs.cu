// CUB's radix sort for the key types of the library: part of the plug-in (src/cuda/driver.h).
#include <cub/device/device_radix_sort.cuh>

#include "cuda/pair_sort.h"

namespace shardarray::cuda {
namespace {

template <class Key>
cudaError_t sort_by(void* own, std::size_t* own_bytes, const PairSort& s, std::byte* memory,
                    cudaStream_t stream) {
  const auto array = [&]<class T>(T*, std::uint64_t at) { return reinterpret_cast<T*>(memory + at); };
  constexpr Key* key = nullptr;
  constexpr std::uint32_t* value = nullptr;
  return cub::DeviceRadixSort::SortPairs(own, *own_bytes, array(key, s.keys), array(key, s.sorted_keys),
                                         array(value, s.values), array(value, s.sorted_values),
                                         static_cast<std::uint32_t>(s.count), 0, static_cast<int>(s.bits),
                                         stream);
}

}  // namespace

int sort_pairs(void* own, std::size_t* own_bytes, const PairSort& s, void* memory, void* stream) {
  const auto sort = s.key_bytes == 4 ? sort_by<std::uint32_t> : sort_by<std::uint64_t>;
  return sort(own, own_bytes, s, static_cast<std::byte*>(memory), static_cast<cudaStream_t>(stream));
}

}  // namespace shardarray::cuda
