#include "cuda/backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/count_text.h"
#include "cuda/executable.h"
#include "cuda/launch.h"
#include "layout/layout.h"
#include "runtime/local_part.h"
#include "shardarray/error.h"

namespace shardarray::cuda {

CudaBackend::CudaBackend(UsedGpus used, MemoryLimit limit, HostBackend host, Processes* others)
    : used_(std::move(used)),
      others_(others),
      host_(host),
      process_(others != nullptr ? others->index() : 0),
      target_(cuda_target()) {
  const auto is_here = [&](const Device& d) { return d.process_index == process_; };
  first_ = static_cast<std::size_t>(std::find_if(all_.begin(), all_.end(), is_here) - all_.begin());
  devices_ = static_cast<int>(std::count_if(all_.begin(), all_.end(), is_here));
  const std::vector<int>& own = used_.numbers[static_cast<std::size_t>(process_)];
  devices_a_gpu_ = devices_ / static_cast<int>(own.size());
  for (const int number : own) gpus_.emplace_back(number).on_shortage([this] { trim(); });
  target_.device_memory = static_cast<std::int64_t>(used_.memory);
  for (int d = 0; d < devices_; d++)
    arenas_.emplace_back(this, d, &gpus_[static_cast<std::size_t>(d / devices_a_gpu_)].memory(), limit);
  for (std::size_t g = 0; g < gpus_.size(); g++)
    arenas_.emplace_back(this, devices_ + static_cast<int>(g), &gpus_[g].memory());
}

std::size_t CudaBackend::checked(int device) const {
  if (device >= 0 && device < devices_) return static_cast<std::size_t>(device);
  throw DeviceError(fmt::format(
      "backend: there is no device cuda:{}. The platform has {}, numbered from 0. Use one of devices().",
      device, count_text(devices_, "device")));
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
  // cuBLASLt wants its workspace aligned to this. With all sizes multiples of it, every address in the arena is aligned.
  constexpr std::size_t alignment = 256;
  try {
    return take(static_cast<std::size_t>(devices_) + index_of(gpu),
                (bytes + alignment - 1) / alignment * alignment);
  } catch (const OutOfMemory&) {
    throw OutOfMemory(fmt::format(
        "run: GPU {} ({}) refused {} bytes that kernels need beside the values. All memory of a program is "
        "taken before it runs. Free arrays, donate inputs (std::move) or run smaller parts.",
        gpu.number(), gpu.properties().name, bytes));
  }
}

void CudaBackend::trim_for_launches(const Gpu& gpu) noexcept {
  arenas_[static_cast<std::size_t>(devices_) + index_of(gpu)].trim();
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

// ---------------------------------------------------------------- other processes

// Ranks are in the order of the GPUs' UUIDs, the same in all processes. The process with rank 0 makes the id.
const BetweenProcesses& CudaBackend::between(std::span<const int> peers, SharedRun& run) {
  const std::lock_guard lock(between_mutex_);
  BetweenProcesses& known = between_[{peers.begin(), peers.end()}];
  if (known.communicator != nullptr) return known;
  std::map<std::string, std::pair<int, int>> places;  // UUID -> process, GPU within it
  const auto add = [&](int process) {
    const std::vector<std::string>& uuids = used_.uuids[static_cast<std::size_t>(process)];
    for (std::size_t k = 0; k < uuids.size(); k++) places[uuids[k]] = {process, static_cast<int>(k)};
  };
  add(process_);
  for (const int p : peers) add(p);
  Communicator::Members m;
  for (const auto& [uuid, place] : places) {
    const int rank = known.ranks[place] = static_cast<int>(m.uuids.size());
    m.uuids.push_back(uuid);
    if (place.first != process_) continue;
    m.ranks.push_back(rank);
    m.gpus.push_back(&gpus_[static_cast<std::size_t>(place.second)]);
  }
  known.communicator = Communicator::of(m, nullptr, run);
  if (known.communicator != nullptr) return known;
  const int first = places.begin()->second.first;
  const Nccl::Id id = run.same_id(first == process_ ? std::nullopt : std::optional(first));
  known.communicator = Communicator::of(m, &id, run);
  return known;
}

// ---------------------------------------------------------------- programs

GpuPlaces CudaBackend::places(const Program& program) {
  GpuPlaces where;
  std::set<int> memories;
  for (const Device& d : program.order->devices())
    if (d.process_index == process_) memories.insert(d.memory);
  for (const int m : memories) where.gpus.push_back(&gpus_[static_cast<std::size_t>(m)]);
  for (const Device& d : program.order->devices())
    where.of_device.push_back(d.process_index == process_
                                  ? static_cast<int>(std::distance(memories.begin(), memories.find(d.memory)))
                                  : -1);
  for (Gpu* const a : where.gpus)
    for (Gpu* const b : where.gpus) where.reach = a->reach(*b) && where.reach;
  return where;
}

std::unique_ptr<Executable> CudaBackend::load(std::shared_ptr<const Program> program) {
  const GpuPlaces where = places(*program);
  return std::make_unique<CudaExecutable>(*this, where, std::move(program));
}

std::unique_ptr<Executable> CudaBackend::load_part(std::shared_ptr<const LocalPart> part) {
  const GpuPlaces where = places(*part->program);
  return std::make_unique<CudaExecutable>(*this, where, part->program, buffer_alignment, true, part);
}

}  // namespace shardarray::cuda
