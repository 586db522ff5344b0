#include "cuda/gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "cuda/communicator.h"
#include "cuda/libraries.h"
#include "shardarray/error.h"

namespace shardarray::cuda {

KeptGpu::KeptGpu() {
  if (driver().get_device(&before_) != ok) driver().last_error();
}
KeptGpu::~KeptGpu() {
  int now = -1;
  const Driver& d = driver();
  if (before_ < 0 || (d.get_device(&now) == ok && now == before_)) return;
  if (d.set_device(before_) != ok) d.last_error();
}

Gpu::Gpu(int number) : driver_(driver()), number_(number) {
  const KeptGpu kept;
  check(driver_.device_properties(&properties_, number_), "cudaGetDeviceProperties");
  set();
  check(driver_.stream_create(&stream_), "cudaStreamCreateWithFlags");
  check(driver_.load_library(&library_, kernel_image()), "cudaLibraryLoadData");
  static_cast<void>(sort_memory({.count = 1}));  // CUB caches its first call's status; memory is free now
}

// ---------------------------------------------------------------- failures

std::string Gpu::failure(Status status, const char* call, const std::string& step) const {
  return fmt::format("cuda: {} failed on GPU {} ({}){}: {}, {}.", call, number_, properties_.name,
                     step.empty() ? step : " in " + step, driver_.error_name(status),
                     driver_.error_text(status));
}

void Gpu::check(Status status, const char* call, const std::string& step) {
  if (status != ok) refuse(failure(status, call, step), status == out_of_memory);
}

void Gpu::refuse(const std::string& what, bool memory) {
  driver_.last_error();  // clears the error
  // Earlier work that failed reports it in the next call, and in all later ones.
  const Status now = stream_ != nullptr ? driver_.stream_query(stream_) : ok;
  if (now != ok && now != not_ready) lose(what);
  if (memory) throw OutOfMemory(what + " CUDA needs some memory beside the arrays. Free arrays.");
  throw DeviceError(what + " It had no effect; the GPU can still be used. Please report this.");
}

void Gpu::lose_by(const std::string& what) {
  const std::lock_guard lock(lost_mutex_);
  if (!is_lost_) lost_ = what + " All that is on the GPU is lost. Restart the process.";
  is_lost_ = true;
}
void Gpu::lose(const std::string& what) {
  lose_by(what);
  const std::lock_guard lock(lost_mutex_);
  throw DeviceError(lost_);
}

void Gpu::throw_if_lost() const {
  if (!is_lost_) return;
  const std::lock_guard lock(lost_mutex_);
  throw DeviceError(lost_);
}

void Gpu::set() { check(driver_.set_device(number_), "cudaSetDevice"); }

void Gpu::make_room() {
  driver_.last_error();  // clears the error
  if (give_back_) give_back_();
}

bool Gpu::reach(const Gpu& other) {
  const std::lock_guard lock(reached_mutex_);
  if (reached_.contains(other.number_)) return true;
  int can = 0;
  check(driver_.can_access_peer(&can, number_, other.number_), "cudaDeviceCanAccessPeer");
  if (can == 0) return false;
  const KeptGpu kept;
  set();
  check_with_room([&] { return driver_.enable_peer_access(other.number_); }, "cudaDeviceEnablePeerAccess");
  reached_.insert(other.number_);
  return true;
}

// ---------------------------------------------------------------- memory

// cudaMalloc aligns to 256 bytes or more, which is all that kernels need.
void* Gpu::GpuMemory::map(std::size_t bytes) {
  gpu_.throw_if_lost();
  const KeptGpu kept;
  gpu_.set();
  void* p = nullptr;
  const Status status = gpu_.driver_.malloc(&p, bytes);
  if (status != out_of_memory) gpu_.check(status, "cudaMalloc");
  if (status == ok) return p;
  gpu_.driver_.last_error();
  return nullptr;
}

// Work that uses the block may still be in flight.
void Gpu::GpuMemory::unmap(void* p, std::size_t) {
  const KeptGpu kept;
  if (gpu_.driver_.set_device(gpu_.number_) != ok || gpu_.finish(nullptr) != ok || gpu_.is_lost_)
    return;  // the next use reports it
  // cudaFree also waits for other GPUs: for a collective that has begun on one of them and not yet on the next, or that never ends. So wait
  // until none is in flight, or until the deadline.
  const auto begin = std::chrono::steady_clock::now();
  for (Pause pause;; pause()) {
    std::unique_lock lock(nccl_mutex());
    if (!collectives_under_way() || std::chrono::steady_clock::now() - begin > nccl_limits().deadline) {
      gpu_.driver_.free(p);
      return;
    }
    lock.unlock();
    look_after_collectives();
  }
}

void Gpu::GpuMemory::fill(void* p, unsigned char byte, std::size_t bytes) { Turn(gpu_).fill(p, byte, bytes); }

void Gpu::need(Slot& slot) {
  if (slot.data != nullptr) return;
  void* fresh = nullptr;
  if (slot.free == nullptr) check(driver_.event_create(&slot.free), "cudaEventCreateWithFlags");
  check(driver_.host_malloc(&fresh, Slot::bytes), "cudaMallocHost");
  slot.data = static_cast<std::byte*>(fresh);
}

void Gpu::read(void* to, const void* from, std::size_t bytes) {
  const std::lock_guard lock(reading_);
  struct Part {
    std::size_t first, bytes;
  };
  const auto part = [&](std::size_t k) {
    return Part{k * Slot::bytes, std::min(Slot::bytes, bytes - k * Slot::bytes)};
  };
  const std::size_t parts = (bytes + Slot::bytes - 1) / Slot::bytes;
  // One part arrives while the previous one is copied out.
  for (std::size_t k = 0; k < parts + 1; k++) {
    if (k < parts) {
      const Turn turn(*this);
      Slot& slot = down_[k % down_.size()];
      need(slot);
      const auto* const source = static_cast<const std::byte*>(from) + part(k).first;
      behind_kernel_ = false;
      check(driver_.copy_async(slot.data, source, part(k).bytes, stream_), "cudaMemcpyAsync");
      check(driver_.event_record(slot.free, stream_), "cudaEventRecord");
    }
    if (k == 0) continue;
    const Slot& slot = down_[(k - 1) % down_.size()];
    check(finish(slot.free), "cudaEventSynchronize", "work before a copy to the host");
    throw_if_lost();
    std::memcpy(static_cast<std::byte*>(to) + part(k - 1).first, slot.data, part(k - 1).bytes);
  }
}

// ---------------------------------------------------------------- work

KernelHandle Gpu::kernel(const char* name, Library library) {
  const KeptGpu kept;
  set();
  KernelHandle found = nullptr;
  check_with_room([&] { return driver_.find_kernel(&found, library, name); }, "cudaLibraryGetKernel", name);
  return found;
}
Library Gpu::load(const std::vector<char>& image) {
  throw_if_lost();
  const KeptGpu kept;
  set();
  Library fresh = nullptr;
  check_with_room([&] { return driver_.load_library(&fresh, image.data()); }, "cudaLibraryLoadData",
                  "printed kernels");
  return fresh;
}

int Gpu::clusters_at_once(KernelHandle kernel, std::uint32_t blocks, std::uint32_t threads) {
  const KeptGpu kept;
  set();
  int count = 0;
  if (driver_.max_active_clusters(&count, kernel, blocks, threads) == ok) return count;
  driver_.last_error();  // unknown; a launch will report the error
  return 1;
}

std::size_t Gpu::sort_memory(const PairSort& sort) {
  const KeptGpu kept;
  set();
  std::size_t bytes = 0;
  check_with_room([&] { return driver_.sort_pairs(nullptr, &bytes, sort, nullptr, stream_); },
                  "cub::DeviceRadixSort");
  return bytes;
}

Event Gpu::take_event() {
  const std::lock_guard lock(events_mutex_);
  if (events_.empty()) {
    events_.reserve(events_.capacity() + 8);  // so that give_back() never allocates
    Event fresh = nullptr;
    check(driver_.event_create(&fresh), "cudaEventCreateWithFlags");
    return fresh;
  }
  const Event event = events_.back();
  events_.pop_back();
  return event;
}

void Gpu::give_back(Event event) noexcept {
  const std::lock_guard lock(events_mutex_);
  events_.push_back(event);
}

Status Gpu::finish(Event event) {
  for (Pause pause; collectives_under_way(); pause()) {
    const Status status = event != nullptr ? driver_.event_query(event) : driver_.stream_query(stream_);
    if (status != not_ready) return status;
    look_after_collectives();
  }
  if (is_lost_) return ok;  // aborted work may never end
  return event != nullptr ? driver_.event_synchronize(event) : driver_.stream_synchronize(stream_);
}

void Mark::wait(const std::string& step) const {
  gpu_.throw_if_lost();
  gpu_.check(gpu_.finish(event_), "cudaEventSynchronize", step);
  gpu_.throw_if_lost();
}

/// The end of a turn's work.
class GpuCompletion final : public Completion {
 public:
  GpuCompletion(Gpu& gpu, std::shared_ptr<const std::string> steps) : steps_(std::move(steps)), end_(gpu) {}
  void record() { end_.check(end_.record(), "cudaEventRecord", *steps_); }
  void wait() const override {
    if (done_) return;
    end_.wait(*steps_);
    done_ = true;
  }

 private:
  const std::shared_ptr<const std::string> steps_;
  Mark end_;
  mutable std::atomic<bool> done_ = false;
};

Turn::Turn(Gpu& gpu) : gpu_(gpu), lock_(gpu.turn_) {
  gpu_.throw_if_lost();
  gpu_.set();
}

void Turn::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  gpu_.behind_kernel_ = false;
  gpu_.check(gpu_.driver_.copy_async(to, from, bytes, gpu_.stream_), "cudaMemcpyAsync");
}

Gpu::Slot& Turn::room() {
  Gpu::Slot* slot = &gpu_.ring_[gpu_.filling_];
  if (slot->rest() == 0) {  // the next one, once the stream is done with it
    gpu_.check(gpu_.driver_.event_record(slot->free, gpu_.stream_), "cudaEventRecord");
    slot->asked = true;
    gpu_.filling_ = (gpu_.filling_ + 1) % gpu_.ring_.size();
    slot = &gpu_.ring_[gpu_.filling_];
    if (slot->asked)
      gpu_.check(gpu_.finish(slot->free), "cudaEventSynchronize", "work before a copy from the host");
    slot->asked = false;
    slot->used = 0;
  }
  gpu_.need(*slot);
  return *slot;
}

void Turn::upload(void* to, const void* from, std::size_t bytes) {
  for (std::size_t first = 0; first < bytes;) {
    Gpu::Slot& slot = room();
    const std::size_t n = std::min(bytes - first, slot.rest());
    std::byte* const here = slot.take(n);
    std::memcpy(here, static_cast<const std::byte*>(from) + first, n);
    copy(static_cast<std::byte*>(to) + first, here, n);
    first += n;
  }
}

void Turn::fill(void* p, unsigned char byte, std::size_t bytes) {
  if (bytes == 0) return;
  gpu_.behind_kernel_ = false;
  gpu_.check(gpu_.driver_.fill_async(p, byte, bytes, gpu_.stream_), "cudaMemsetAsync");
}

// A copy to pageable memory blocks until it is done, and nobody would abort a hung collective meanwhile.
void Turn::read(void* to, const void* from, std::size_t bytes) {
  for (std::size_t first = 0; first < bytes;) {
    Gpu::Slot& slot = room();
    const std::size_t before = slot.used, n = std::min(bytes - first, slot.rest());
    std::byte* const here = slot.take(n);  // even if a call fails: a pending copy may still write here
    copy(here, static_cast<const std::byte*>(from) + first, n);
    gpu_.check(gpu_.driver_.event_record(slot.free, gpu_.stream_), "cudaEventRecord");
    gpu_.check(gpu_.finish(slot.free), "cudaEventSynchronize", "work before a copy to the host");
    gpu_.throw_if_lost();
    std::memcpy(static_cast<std::byte*>(to) + first, here, n);
    slot.used = before;
    first += n;
  }
}

void Turn::here() { gpu_.set(); }

void Turn::launch(KernelHandle kernel, const Grid& grid, void** arguments, const std::string& step) {
  const bool early = gpu_.behind_kernel_ && gpu_.properties_.major >= 9;
  gpu_.check_with_room([&] { return gpu_.driver_.launch(kernel, grid, arguments, stream(), early); },
                       "cudaLaunchKernel", step);
  gpu_.behind_kernel_ = true;
  if (nodes_ == nullptr) return;
  GraphNode& node = nodes_->emplace_back();
  gpu_.check(gpu_.driver_.last_captured(&node, stream()), "cudaStreamGetCaptureInfo", step);
}

void Turn::sort_pairs(const PairSort& sort, void* memory, void* own, std::size_t own_bytes,
                      const std::string& step) {
  const Stream in = library_stream();
  gpu_.check_with_room([&] { return gpu_.driver_.sort_pairs(own, &own_bytes, sort, memory, in); },
                       "cub::DeviceRadixSort", step);
}

void Turn::fail(const char* call, const char* status, const std::string& step, bool memory) {
  gpu_.refuse(fmt::format("cuda: {} failed on GPU {} ({}) in {}: {}.", call, gpu_.number_,
                          gpu_.properties_.name, step, status),
              memory);
}

void Turn::mark() {
  here();
  if (gpu_.met_ == nullptr) gpu_.check(gpu_.driver_.event_create(&gpu_.met_), "cudaEventCreateWithFlags");
  gpu_.check(gpu_.driver_.event_record(gpu_.met_, stream()), "cudaEventRecord");
}

void Turn::follow(const Turn& other) {
  gpu_.behind_kernel_ = false;
  gpu_.check(gpu_.driver_.stream_wait_event(stream(), other.gpu_.met_), "cudaStreamWaitEvent");
}

void meet(std::span<Turn* const> turns) {
  for (Turn* const t : turns) t->mark();
  for (Turn* const t : turns) {
    t->here();
    for (Turn* const other : turns)
      if (other != t) t->follow(*other);
  }
}

void gather(std::span<Turn* const> turns) {
  for (Turn* const t : turns.subspan(1)) t->mark();
  if (turns.size() > 1) turns[0]->here();
  for (Turn* const t : turns.subspan(1)) turns[0]->follow(*t);
}

void spread(std::span<Turn* const> turns) {
  if (turns.size() > 1) turns[0]->mark();
  for (Turn* const t : turns.subspan(1)) {
    t->here();
    t->follow(*turns[0]);
  }
}

// The other streams are captured from the point where they follow the first one's, until that one follows them.
GraphHandle capture(std::span<Turn* const> turns, const std::function<void()>& ask, GraphNodes& nodes) {
  for (Turn* const t : turns) {
    Gpu& gpu = t->gpu_;
    if (gpu.capturing_ != nullptr) continue;
    t->here();
    gpu.check_with_room([&] { return gpu.driver_.stream_create(&gpu.capturing_); },
                        "cudaStreamCreateWithFlags");
  }
  Gpu& first = turns[0]->gpu_;
  if (turns.size() > 1) turns[0]->here();
  first.check(first.driver_.begin_capture(first.capturing_), "cudaStreamBeginCapture");
  GraphHandle graph = nullptr;
  nodes.assign(turns.size(), {});
  const auto keep_in = [&](std::size_t g, std::vector<GraphNode>* to) {
    turns[g]->nodes_ = to;
    turns[g]->gpu_.behind_kernel_ = false;
  };
  for (std::size_t g = 0; g < turns.size(); g++) keep_in(g, &nodes[g]);
  const auto end = [&] {
    for (std::size_t g = 0; g < turns.size(); g++) keep_in(g, nullptr);
    return first.driver_.end_capture(&graph, first.capturing_);
  };
  try {
    spread(turns);
    ask();
    gather(turns);
  } catch (...) {
    if (end() == ok) first.driver_.graph_destroy(graph);
    first.driver_.last_error();
    throw;
  }
  first.check(end(), "cudaStreamEndCapture");
  return graph;
}

void Turn::wait() { gpu_.check(gpu_.finish(nullptr), "cudaStreamSynchronize"); }

CompletionRef Turn::done(std::shared_ptr<const std::string> steps) {
  auto work = std::make_shared<GpuCompletion>(gpu_, std::move(steps));
  work->record();
  return work;
}

}  // namespace shardarray::cuda
