// The CUDA backend: logical devices on physical GPUs.
#pragma once
#include <deque>
#include <memory>
#include <vector>

#include "cuda/gpu.h"
#include "runtime/arena.h"
#include "runtime/backend.h"
#include "runtime/platforms.h"

namespace shardarray::cuda {

class CudaBackend final : public Backend {
 public:
  /// `logical_devices` on each of the `gpus` GPUs that CUDA shows; `limit`: of each.
  CudaBackend(int gpus, int logical_devices, MemoryLimit limit, HostBackend host);
  const char* platform() const override { return "cuda"; }
  int device_count() const override { return devices_; }
  Device device(int local) const override;
  const Target& target() const override { return target_; }
  using Backend::allocate;
  BufferRef allocate(int device, std::size_t bytes) override;
  void deallocate(Buffer* b) override { arenas_[static_cast<std::size_t>(b->device)].deallocate(b); }
  void copy_from_host(const BufferRef& to, const void* from, std::size_t bytes) override;
  void copy_to_host(void* to, const BufferRef& from, std::size_t bytes) override;
  void copy(const BufferRef& to, const BufferRef& from, std::size_t bytes) override;
  std::unique_ptr<Executable> load(std::shared_ptr<const Program> program) override;
  MemoryStats memory_stats(int device) const override { return arenas_[checked(device)].stats(); }

  /// What launches need beside values and their scratch, 256-byte aligned. Counted for no device.
  BufferRef allocate_for_launches(const Gpu& gpu, std::size_t bytes);
  /// What of that nobody uses goes back to the GPU.
  void trim_for_launches(const Gpu& gpu) noexcept;
  /// Does what there are no kernels for.
  HostBackend host() const { return host_; }

 private:
  std::size_t checked(int device) const;
  /// Blocks that nobody uses, of all devices, go back to their GPUs.
  void trim() noexcept;
  Gpu& gpu_of(const Buffer& b);
  BufferRef take(std::size_t arena, std::size_t bytes);

  const int devices_, devices_a_gpu_;
  const HostBackend host_;
  Target target_;
  std::deque<Gpu> gpus_;
  std::deque<Arena> arenas_;  // of the devices, then one for the launches of each GPU; no element ever moves
};

}  // namespace shardarray::cuda
