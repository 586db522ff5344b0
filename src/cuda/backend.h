// The CUDA backend: logical devices on this process's physical GPUs, and what it knows of other processes' GPUs.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "cuda/gpu.h"
#include "cuda/gpu_steps.h"
#include "cuda/gpus_of_processes.h"
#include "runtime/arena.h"
#include "runtime/backend.h"
#include "runtime/platforms.h"
#include "runtime/processes.h"

namespace shardarray::cuda {

class SharedRun;

/// NCCL between the GPUs of some processes.
struct BetweenProcesses {
  Communicator* communicator = nullptr;
  std::map<std::pair<int, int>, int> ranks;  ///< process, Device::memory -> the GPU's rank
};

class CudaBackend final : public Backend {
 public:
  /// `limit`: per device. `others`: all processes; null: only this one.
  CudaBackend(UsedGpus used, MemoryLimit limit, HostBackend host, Processes* others);
  const char* platform() const override { return "cuda"; }
  int device_count() const override { return devices_; }
  Device device(int local) const override { return all_[first_ + checked(local)]; }
  std::vector<Device> devices() const override { return all_; }
  const Target& target() const override { return target_; }
  using Backend::allocate;
  BufferRef allocate(int device, std::size_t bytes) override;
  void deallocate(Buffer* b) override { arenas_[static_cast<std::size_t>(b->device)].deallocate(b); }
  void copy_from_host(const BufferRef& to, const void* from, std::size_t bytes) override;
  void copy_to_host(void* to, const BufferRef& from, std::size_t bytes) override;
  void copy(const BufferRef& to, const BufferRef& from, std::size_t bytes) override;
  std::unique_ptr<Executable> load(std::shared_ptr<const Program> program) override;
  std::unique_ptr<Executable> load_part(std::shared_ptr<const LocalPart> part) override;
  MemoryStats memory_stats(int device) const override { return arenas_[checked(device)].stats(); }

  /// Memory for launches beyond values and their scratch, 256-byte aligned. Not counted for any device.
  BufferRef allocate_for_launches(const Gpu& gpu, std::size_t bytes);
  /// Returns unused blocks of it to the GPU.
  void trim_for_launches(const Gpu& gpu) noexcept;
  /// For steps without kernels.
  HostBackend host() const { return host_; }
  /// The transport to other processes, if there are any.
  Transport& transport() const { return others_->transport(); }
  bool has_nccl_between() const { return used_.by_nccl; }
  /// Of this process and `peers`. The communicator is created in their first shared run.
  const BetweenProcesses& between(std::span<const int> peers, SharedRun& run);

 private:
  std::size_t checked(int device) const;
  /// Returns unused blocks of all devices to their GPUs.
  void trim() noexcept;
  Gpu& gpu_of(const Buffer& b);
  BufferRef take(std::size_t arena, std::size_t bytes);

  GpuPlaces places(const Program& program);
  std::size_t index_of(const Gpu& gpu) const {
    return static_cast<std::size_t>(gpu.number() - gpus_[0].number());
  }

  const UsedGpus used_;  // of all processes
  const std::vector<Device>& all_ = used_.devices;
  Processes* const others_;
  const HostBackend host_;
  int process_ = 0;
  std::size_t first_ = 0;  // index of this process's first device in all_
  int devices_ = 0, devices_a_gpu_ = 0;
  Target target_;
  std::deque<Gpu> gpus_;
  std::mutex between_mutex_;
  std::map<std::vector<int>, BetweenProcesses> between_;  // by peers
  std::deque<Arena> arenas_;  // one per device, then one per GPU for its launches; elements never move
};

}  // namespace shardarray::cuda
