#include "cuda/host_kernels.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/conv.cuh"
#include "kernels/exchange.cuh"
#include "kernels/gemm_tiles.cuh"
#include "kernels/interpreter.cuh"
#include "kernels/pairs.cuh"
#include "kernels/parts.cuh"
#include "kernels/scan.cuh"
#include "kernels/scan_tiles.cuh"
#include "kernels/scatter.cuh"
#include "kernels/sort.cuh"
#include "kernels/update.cuh"

namespace shardarray::cuda {
namespace {

/// Runs one block: its threads in turn, `together` at a time.
template <auto text, std::uint32_t together>
void run_block(const device::Grid& grid, const std::byte* table, std::byte* scratch,
               const device::Bases& bases) {
  device::Grid g = grid;
  for (g.thread = 0; g.thread < g.threads; g.thread += together) text(g, table, scratch, bases);
}

struct NamedKernel {
  std::string_view name;
  HostKernel run;
};
#define SHARDARRAY_KERNEL(name, text, together) {#name, run_block<text, together>},
constexpr NamedKernel host_kernels[] = {
#include "kernels/list.inc"
};
#undef SHARDARRAY_KERNEL

template <class Key> void sort_by(const PairSort& s, std::byte* memory) {
  const auto* const keys = reinterpret_cast<const Key*>(memory + s.keys);
  const auto* const values = reinterpret_cast<const std::uint32_t*>(memory + s.values);
  const Key counted = static_cast<Key>(~Key{0} >> (8 * sizeof(Key) - s.bits));
  std::vector<std::uint32_t> order(static_cast<std::size_t>(s.count));
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return (keys[a] & counted) < (keys[b] & counted);
  });
  for (std::size_t k = 0; k < order.size(); k++) {
    reinterpret_cast<Key*>(memory + s.sorted_keys)[k] = keys[order[k]];
    reinterpret_cast<std::uint32_t*>(memory + s.sorted_values)[k] = values[order[k]];
  }
}

}  // namespace

void sort_pairs_on_host(const PairSort& s, std::byte* memory) {
  (s.key_bytes == 4 ? sort_by<std::uint32_t> : sort_by<std::uint64_t>)(s, memory);
}

HostKernel host_kernel(std::string_view name) {
  for (const NamedKernel& k : host_kernels) {
    if (k.name == name) return k.run;
  }
  return nullptr;
}

}  // namespace shardarray::cuda
