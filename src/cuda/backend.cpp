#include "cuda/backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "cuda/executable.h"
#include "cuda/launch.h"
#include "layout/layout.h"
#include "shardarray/error.h"

namespace shardarray::cuda {
namespace {

/// Of a GPU's memory, what placements may count on. CUDA takes some for its context, the kernels' code and local memory, graphs, and
/// the buffers of cuBLASLt and NCCL, most of it when arrays are there already.
std::uint64_t memory_for_arrays(const Gpu& gpu) {
  constexpr std::uint64_t most_reserved = std::uint64_t{3} << 29;  // 1.5 GiB
  const std::uint64_t all = gpu.properties().memory;
  return all - std::min(all / 50, most_reserved);
}

}  // namespace

CudaBackend::CudaBackend(int gpus, int logical_devices, MemoryLimit limit, HostBackend host)
    : devices_(gpus * logical_devices), devices_a_gpu_(logical_devices), host_(host), target_(cuda_target()) {
  std::uint64_t least = limit.bytes;
  for (int g = 0; g < gpus; g++) {
    gpus_.emplace_back(g);
    gpus_.back().on_shortage([this] { trim(); });
    least = std::min(least, memory_for_arrays(gpus_.back()) / static_cast<std::uint64_t>(logical_devices));
  }
  target_.device_memory = static_cast<std::int64_t>(least);
  for (int d = 0; d < devices_; d++)
    arenas_.emplace_back(this, d, &gpus_[static_cast<std::size_t>(d / devices_a_gpu_)].memory(), limit);
  for (Gpu& gpu : gpus_) arenas_.emplace_back(this, devices_ + gpu.number(), &gpu.memory());
}

Device CudaBackend::device(int local) const {
  Device d = Backend::device(local);
  d.memory = local / devices_a_gpu_;
  d.kind = gpus_[static_cast<std::size_t>(d.memory)].properties().name;
  return d;
}

std::size_t CudaBackend::checked(int device) const {
  if (device >= 0 && device < devices_) return static_cast<std::size_t>(device);
  throw DeviceError(fmt::format(
      "backend: there is no device cuda:{}. There are {} devices, numbered from 0. Use one of devices().",
      device, devices_));
}

Gpu& CudaBackend::gpu_of(const Buffer& b) {
  const int gpu = b.device < devices_ ? b.device / devices_a_gpu_ : b.device - devices_;
  return gpus_[static_cast<std::size_t>(gpu)];
}

// ---------------------------------------------------------------- memory

void CudaBackend::trim() noexcept {
  for (Arena& a : arenas_) a.trim();
}

BufferRef CudaBackend::take(std::size_t arena, std::size_t bytes) {
  try {
    return BufferRef(arenas_[arena].allocate(bytes));
  } catch (const OutOfMemory&) {
    trim();
    return BufferRef(arenas_[arena].allocate(bytes));
  }
}

BufferRef CudaBackend::allocate(int device, std::size_t bytes) { return take(checked(device), bytes); }

BufferRef CudaBackend::allocate_for_launches(const Gpu& gpu, std::size_t bytes) {
  // As cuBLASLt asks of a workspace. Where every size is a multiple of it, every address in the arena is.
  constexpr std::size_t alignment = 256;
  try {
    return take(static_cast<std::size_t>(devices_ + gpu.number()),
                (bytes + alignment - 1) / alignment * alignment);
  } catch (const OutOfMemory&) {
    throw OutOfMemory(fmt::format(
        "run: GPU {} ({}) refused {} bytes that kernels need beside the values. All memory of a program is "
        "taken before it runs. Free arrays, donate inputs (std::move) or run smaller parts.",
        gpu.number(), gpu.properties().name, bytes));
  }
}

void CudaBackend::trim_for_launches(const Gpu& gpu) noexcept {
  arenas_[static_cast<std::size_t>(devices_ + gpu.number())].trim();
}

void CudaBackend::copy_from_host(const BufferRef& to, const void* from, std::size_t bytes) {
  Turn(gpu_of(*to.get())).upload(to->data, from, bytes);
}

void CudaBackend::copy_to_host(void* to, const BufferRef& from, std::size_t bytes) {
  gpu_of(*from.get()).read(to, from->data, bytes);
}

void CudaBackend::copy(const BufferRef& to, const BufferRef& from, std::size_t bytes) {
  Gpu& here = gpu_of(*to.get());
  if (from->owner != this || &gpu_of(*from.get()) != &here) return Backend::copy(to, from, bytes);
  Turn(here).copy(to->data, from->data, bytes);
}

// ---------------------------------------------------------------- programs

std::unique_ptr<Executable> CudaBackend::load(std::shared_ptr<const Program> program) {
  GpuPlaces where;
  std::set<int> numbers;
  for (const Device& d : program->order->devices()) numbers.insert(d.memory);
  for (const int n : numbers) where.gpus.push_back(&gpus_[static_cast<std::size_t>(n)]);
  for (const Device& d : program->order->devices())
    where.of_device.push_back(static_cast<int>(std::distance(numbers.begin(), numbers.find(d.memory))));
  for (Gpu* const a : where.gpus)
    for (Gpu* const b : where.gpus) where.reach = a->reach(*b) && where.reach;
  return std::make_unique<CudaExecutable>(*this, where, std::move(program));
}

}  // namespace shardarray::cuda
