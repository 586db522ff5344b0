#include "cuda/host_kernels.h"

#include "kernels/conv.cuh"
#include "kernels/exchange.cuh"
#include "kernels/gemm_tiles.cuh"
#include "kernels/interpreter.cuh"
#include "kernels/parts.cuh"
#include "kernels/radix.cuh"
#include "kernels/scan.cuh"
#include "kernels/scan_tiles.cuh"
#include "kernels/scatter.cuh"
#include "kernels/sort.cuh"
#include "kernels/update.cuh"

namespace shardarray::cuda {
namespace {

/// One block: the threads one after the other, `together` at a time.
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

}  // namespace

HostKernel host_kernel(std::string_view name) {
  for (const NamedKernel& k : host_kernels) {
    if (k.name == name) return k.run;
  }
  return nullptr;
}

}  // namespace shardarray::cuda
