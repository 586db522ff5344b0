// The CPU backend: virtual devices, which own data but no threads.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>

#include "base/count_text.h"
#include "cpu/executable.h"
#include "runtime/arena.h"
#include "runtime/backend.h"
#include "runtime/devices.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

// split: enough parts for the workers of a large machine. enough_rows keep them busy. A transfer's start cost keeps tiny values from
// detours that save a few bytes. 50 operations take as long as copying one f32 (two cores with AVX2: 179 GFLOP/s in products, 14 GB/s).
// Sums are joined up to the size of one message between processes.
constexpr Target cpu_target = {.split = {.min_points = 1 << 17, .most_results = 16, .parts = 64},
                               .fusion = {.most_operations = 256, .enough_rows = 16, .few_points = 16384},
                               .alignment = 64,
                               .links = {.start = 64,
                                         .halo_start = 64,
                                         .operation = 4.0 / 50,
                                         .float64_product = 4.0 / 25,
                                         .together = 16 << 10}};

class CpuBackend final : public Backend {
 public:
  CpuBackend(int device_count, Transport* transport, std::vector<Device> all)
      : transport_(transport), all_(std::move(all)) {
    for (int d = 0; d < device_count; d++) arenas_.emplace_back(this, d);
    for (int d = 0; all_.size() < arenas_.size(); d++) all_.push_back(Backend::device(d));
    const auto own = std::find_if(all_.begin(), all_.end(),
                                  [](const Device& d) { return d.process_index == process_index(); });
    first_ = static_cast<std::size_t>(own - all_.begin());
  }
  Device device(int local) const override { return all_[first_ + checked(local)]; }
  std::vector<Device> devices() const override { return all_; }
  const char* platform() const override { return "cpu"; }
  const Target& target() const override { return cpu_target; }
  int device_count() const override { return static_cast<int>(arenas_.size()); }
  BufferRef allocate(int device, std::size_t bytes) override {
    return BufferRef(arenas_[checked(device)].allocate(bytes));
  }
  void allocate(std::span<const int> devices, std::span<const std::uint64_t> bytes,
                std::span<BufferRef> to) override {
    for (std::size_t k = 0; k < devices.size(); k++)
      to[k] = BufferRef(arenas_[checked(devices[k])].allocate(bytes[k]));
  }
  void deallocate(Buffer* b) override { arenas_[static_cast<std::size_t>(b->device)].deallocate(b); }
  void copy_from_host(const BufferRef& to, const void* from, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(to->data, from, bytes);
  }
  void copy_to_host(void* to, const BufferRef& from, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from->data, bytes);
  }
  std::span<std::byte> host_memory(const BufferRef& b) override {
    return {static_cast<std::byte*>(b->data), b->bytes};
  }
  void copy(const BufferRef& to, const BufferRef& from, std::size_t bytes) override {
    from->owner->copy_to_host(to->data, from, bytes);  // this memory is host memory
  }
  std::unique_ptr<Executable> load(std::shared_ptr<const Program> program) override {
    return make_cpu_executable(std::move(program));
  }
  std::unique_ptr<Executable> load_part(std::shared_ptr<const LocalPart> part) override {
    if (transport_ == nullptr) return Backend::load_part(std::move(part));
    return make_cpu_executable(std::move(part), *transport_);
  }
  MemoryStats memory_stats(int device) const override { return arenas_[checked(device)].stats(); }

 private:
  std::size_t checked(int device) const {
    if (device >= 0 && device < device_count()) return static_cast<std::size_t>(device);
    throw DeviceError(fmt::format(
        "backend: there is no device cpu:{}. The platform has {}, numbered from 0. Use one of devices().",
        device, count_text(device_count(), "device")));
  }
  Transport* const transport_;
  std::vector<Device> all_;   // of all processes
  std::size_t first_ = 0;     // index of this process's first device
  std::deque<Arena> arenas_;  // one per device, for accounting; elements never move
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(int device_count, Transport* transport, std::vector<Device> all) {
  return std::make_unique<CpuBackend>(device_count, transport, std::move(all));
}

}  // namespace shardarray
