// The entry point that the core library looks up.
#include <fmt/format.h>

#include <algorithm>

#include "abi_hash.h"
#include "base/env.h"
#include "cuda/backend.h"
#include "cuda/gpus_of_processes.h"
#include "cuda/libraries.h"
#include "runtime/platforms.h"
#include "runtime/processes.h"
#include "shardarray/error.h"

namespace shardarray::cuda {
namespace {

constexpr int oldest_architecture = 8;  // Ampere
constexpr int most_logical_devices = 1024;

/// How many GPUs CUDA shows. Throws DeviceError if there are none, or none that this library can use.
int usable_gpus() {
  const Driver& d = driver();
  int version = 0, needed = 0, count = 0;
  d.runtime_version(&needed);
  if (d.driver_version(&version) != ok || version == 0)
    throw DeviceError(fmt::format(
        "cuda: this machine has no NVIDIA driver. CUDA devices need one for CUDA {} or newer. Install it, or "
        "use the platform 'cpu'.",
        needed / 1000));
  if (version / 1000 < needed / 1000)
    throw DeviceError(
        fmt::format("cuda: the NVIDIA driver is for CUDA {}.{}. The library needs one for CUDA {} or newer. "
                    "Install it, or use the platform 'cpu'.",
                    version / 1000, version % 1000 / 10, needed / 1000));
  const Status status = d.device_count(&count);
  if (status == no_device || (status == ok && count == 0))
    throw DeviceError(
        "cuda: the NVIDIA driver shows no GPU. CUDA_VISIBLE_DEVICES may hide them. Correct the variable, or "
        "use the platform 'cpu'.");
  if (status != ok)
    throw DeviceError(fmt::format(
        "cuda: cudaGetDeviceCount failed: {}, {}. CUDA devices need a driver that works. Ask nvidia-smi what "
        "is wrong, or use the platform 'cpu'.",
        d.error_name(status), d.error_text(status)));
  return count;
}

void need_architecture(int gpus) {
  for (int g = 0; g < gpus; g++) {
    GpuProperties p;
    if (driver().device_properties(&p, g) != ok || p.major >= oldest_architecture) continue;
    throw DeviceError(fmt::format(
        "cuda: GPU {} ({}) has compute capability {}.{}. The library has kernels for {}.0 and newer. Hide "
        "it with CUDA_VISIBLE_DEVICES, or use the platform 'cpu'.",
        g, p.name, p.major, p.minor, oldest_architecture));
  }
}

std::int64_t number(const char* variable, std::int64_t otherwise, std::int64_t lo, std::int64_t hi) {
  try {
    return env_int(variable, otherwise, lo, hi);
  } catch (const Error& e) { throw DeviceError(e.what()); }
}
/// Of a logical device. Large blocks are multiples of a huge page.
MemoryLimit memory_limit() {
  constexpr const char* variable = "SHARDARRAY_CUDA_MEMORY_LIMIT";
  const std::int64_t bytes = number(variable, 0, huge_page, std::int64_t{1} << 47);
  return bytes == 0 ? MemoryLimit{} : MemoryLimit{static_cast<std::size_t>(bytes), variable};
}

/// The part of a GPU's memory that placements may count on. CUDA needs some for its context, kernels' code and local memory, graphs, and
/// the buffers of cuBLASLt and NCCL, most of it allocated when arrays already exist.
std::uint64_t memory_for_arrays(std::uint64_t all) {
  constexpr std::uint64_t most_reserved = std::uint64_t{3} << 29;  // 1.5 GiB
  return all - std::min(all / 50, most_reserved);
}

/// 0: no NCCL.
int nccl_version() {
  try {
    int version = 0;
    return nccl().get_version(&version) == 0 ? version : 0;
  } catch (const CompileError&) { return 0; }
}

/// What this process sees.
SeenGpus seen(MemoryLimit limit, bool has_others) {
  SeenGpus s;
  s.logical_devices = static_cast<int>(number("SHARDARRAY_CUDA_LOGICAL_DEVICES", 1, 1, most_logical_devices));
  const int gpus = usable_gpus();
  need_architecture(gpus);
  if (has_others) s.nccl = nccl_version();
  for (int g = 0; g < gpus; g++) {
    GpuProperties p;
    driver().device_properties(&p, g);
    const std::uint64_t memory = memory_for_arrays(p.memory);
    const auto devices = static_cast<std::uint64_t>(s.logical_devices);
    s.gpus.push_back({p.uuid, p.name, limit.bytes < memory / devices ? limit.bytes * devices : memory});
  }
  return s;
}
/// What all processes see; for one that can use no GPU, the reason.
std::vector<SeenGpus> seen_by_all(Processes* others) {
  if (others == nullptr) return {seen(memory_limit(), false)};
  SeenGpus own;
  try {
    own = seen(memory_limit(), true);
  } catch (const DeviceError& e) { own.failure = e.text(); }
  std::vector<SeenGpus> all;
  for (const std::string& text : others->all_gather("devices of cuda", to_text(own)))
    all.push_back(seen_gpus(text));
  return all;
}

std::unique_ptr<Backend> make_backend(HostBackend host, Processes* others) {
  UsedGpus used = deal_out(seen_by_all(others));
  return std::make_unique<CudaBackend>(std::move(used), memory_limit(), host, others);
}

}  // namespace
}  // namespace shardarray::cuda

extern "C" __attribute__((visibility("default"))) const shardarray::BackendPlugin shardarray_plugin;
const shardarray::BackendPlugin shardarray_plugin = {{SHARDARRAY_ABI_HASH, SHARDARRAY_PLUGIN_VERSION},
                                                     shardarray::cuda::make_backend};
