// One physical GPU: a stream that runs all its work in order, and transfers between it and the host.
//
// Nothing is torn down when the process ends. If asynchronous work fails, all later use of the GPU fails.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cuda/driver.h"
#include "runtime/completion.h"
#include "runtime/memory_source.h"

namespace shardarray::cuda {

class Turn;
/// The nodes of a graph: by GPU, then by launch.
using GraphNodes = std::vector<std::vector<GraphNode>>;

/// Restores the thread's current GPU: programs make CUDA calls of their own.
class KeptGpu {
 public:
  KeptGpu();
  ~KeptGpu();
  KeptGpu(const KeptGpu&) = delete;
  KeptGpu& operator=(const KeptGpu&) = delete;

 private:
  int before_ = -1;
};

class Gpu {
 public:
  /// GPU `number` in CUDA's order. Throws DeviceError.
  explicit Gpu(int number);
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  int number() const { return number_; }
  const GpuProperties& properties() const { return properties_; }
  /// The GPU's memory; host code must not touch these addresses.
  MemorySource& memory() { return memory_; }
  /// Returns when the bytes have arrived.
  void read(void* to, const void* from, std::size_t bytes);
  /// A kernel of kernel_image(), or of a library. Throws DeviceError if there is none of that name.
  KernelHandle kernel(const char* name) { return kernel(name, library_); }
  KernelHandle kernel(const char* name, Library library);
  /// How many clusters of `blocks` blocks it can run at once.
  int clusters_at_once(KernelHandle kernel, std::uint32_t blocks, std::uint32_t threads);
  /// Lets its kernels access the other GPU's memory; false if the machine cannot do that.
  bool reach(const Gpu& other);
  /// If the GPU is lost, throws the reason.
  void throw_if_lost() const;
  /// Marks the GPU as lost, unless it already is.
  void lose_by(const std::string& what);
  /// Makes this GPU the thread's current one. The caller holds a KeptGpu.
  void set();
  /// Bytes of workspace that a sort needs.
  std::size_t sort_memory(const PairSort& sort);
  /// Loads compiled kernels, for good. Throws DeviceError if they are not for this GPU.
  Library load(const std::vector<char>& image);
  /// Sets what make_room() does.
  void on_shortage(std::function<void()> give_back) { give_back_ = std::move(give_back); }
  /// CUDA and its libraries need memory beside the arrays: if an allocation fails, this returns unused blocks to the GPUs, and the call is
  /// retried. Not under nccl_mutex().
  void make_room();

 private:
  friend class Turn;
  friend class Mark;
  friend class LaunchGraph;
  friend GraphHandle capture(std::span<Turn* const> turns, const std::function<void()>& ask,
                             GraphNodes& nodes);
  class GpuMemory final : public MemorySource {
   public:
    explicit GpuMemory(Gpu& gpu) : gpu_(gpu) {}
    void* map(std::size_t bytes) override;
    void unmap(void* p, std::size_t bytes) override;
    void fill(void* p, unsigned char byte, std::size_t bytes) override;

   private:
    Gpu& gpu_;
  };
  /// Pinned memory, and an event for when the stream is done with it.
  struct Slot {
    static constexpr std::size_t bytes = std::size_t{1} << 20;
    std::byte* data = nullptr;
    Event free = nullptr;
    std::size_t used = 0;
    bool asked = false;  // `free` is recorded in the stream

    std::size_t rest() const { return bytes - used; }
    /// The next n bytes, at most rest().
    std::byte* take(std::size_t n) {
      std::byte* const next = data + used;
      used = std::min(bytes, used + (n + 15) / 16 * 16);
      return next;
    }
  };

  /// Throws if a call failed; `step` is named. Sticky errors make the GPU lost.
  void check(Status status, const char* call, const std::string& step = "");
  /// The same for a call for which CUDA may need memory: out of memory, it is retried after make_room().
  template <class Call>
  void check_with_room(const Call& make, const char* call, const std::string& step = "") {
    Status status = make();
    if (status == out_of_memory) {
      make_room();
      status = make();
    }
    check(status, call, step);
  }
  [[noreturn]] void refuse(const std::string& what, bool memory);
  [[noreturn]] void lose(const std::string& what);
  std::string failure(Status status, const char* call, const std::string& step) const;
  /// Waits for an event or, if null, for all work of the stream, and returns its status. Meanwhile aborts hung collectives. Does not wait
  /// for a lost GPU.
  Status finish(Event event);
  void need(Slot& slot);
  Event take_event();
  void give_back(Event event) noexcept;

  const Driver& driver_;
  const int number_;
  GpuProperties properties_;
  GpuMemory memory_{*this};
  std::mutex turn_;                                // held from a thread's first request to its last
  Stream stream_ = nullptr, capturing_ = nullptr;  // capturing_: only captured, never run
  bool behind_kernel_ = false;                     // the last work in the stream is a kernel of ours
  Library library_ = nullptr;
  std::mutex reached_mutex_;
  std::set<int> reached_{number_};  // numbers of accessible GPUs
  Event met_ = nullptr;             // where this GPU last met others
  std::array<Slot, 8> ring_;        // used within turns
  std::size_t filling_ = 0;         // the slot being filled
  std::mutex reading_;              // guards down_
  std::array<Slot, 2> down_;
  std::mutex events_mutex_;
  std::vector<Event> events_;  // unused ones
  mutable std::mutex lost_mutex_;
  std::atomic<bool> is_lost_ = false;
  std::string lost_;  // the first asynchronous failure
  std::function<void()> give_back_;
};

/// A point in a GPU's stream, after all work enqueued so far. This GPU must be the thread's current one.
class Mark {
 public:
  explicit Mark(Gpu& gpu) : gpu_(gpu), event_(gpu.take_event()) {}
  ~Mark() { gpu_.give_back(event_); }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  /// Call within a turn.
  Status record() { return gpu_.driver_.event_record(event_, gpu_.stream_); }
  /// ok if all work before it is done, not_ready, or its failure.
  Status status() const { return gpu_.driver_.event_query(event_); }
  /// Throws if a call failed; `step` is named.
  void check(Status status, const char* call, const std::string& step) const {
    gpu_.check(status, call, step);
  }
  std::string failure(Status status, const char* call, const std::string& step) const {
    return gpu_.failure(status, call, step);
  }
  /// Returns when all work before it is done; throws if the GPU is lost.
  void wait(const std::string& step) const;

 private:
  Gpu& gpu_;
  const Event event_;
};

/// Exclusive access to a GPU's stream: others' work comes before or after all of a turn's. Throws if the GPU is lost.
class Turn {
 public:
  explicit Turn(Gpu& gpu);
  Gpu& gpu() const { return gpu_; }
  /// With several turns in a thread: makes this one's GPU current.
  void here();
  /// Between addresses of this GPU's memory.
  void copy(void* to, const void* from, std::size_t bytes);
  /// From the host, whose memory may be overwritten at once.
  void upload(void* to, const void* from, std::size_t bytes);
  void fill(void* p, unsigned char byte, std::size_t bytes);
  /// To the host, after all work so far: returns when the bytes have arrived.
  void read(void* to, const void* from, std::size_t bytes);
  /// `step` is named in failures.
  void launch(KernelHandle kernel, const Grid& grid, void** arguments, const std::string& step);
  /// In `memory`; `own`: workspace as Gpu::sort_memory() says.
  void sort_pairs(const PairSort& sort, void* memory, void* own, std::size_t own_bytes,
                  const std::string& step);
  /// The stream for a library's call; fail() throws its failure, with the library's status name. `memory`: out of memory.
  Stream library_stream() {
    gpu_.behind_kernel_ = false;
    return stream();
  }
  [[noreturn]] void fail(const char* call, const char* status, const std::string& step, bool memory);
  /// Waits until all work is done.
  void wait();
  /// The end of all work so far; its failure names `steps`.
  CompletionRef done(std::shared_ptr<const std::string> steps);

  /// Records this GPU's position for others to follow. Its GPU is current.
  void mark();
  /// Later work of this GPU, which is current, runs after the work before the other one's mark.
  void follow(const Turn& other);

 private:
  friend class Gpu;
  friend class LaunchGraph;
  friend GraphHandle capture(std::span<Turn* const> turns, const std::function<void()>& ask,
                             GraphNodes& nodes);
  Stream stream() const { return nodes_ != nullptr ? gpu_.capturing_ : gpu_.stream_; }
  /// A slot with space left.
  Gpu::Slot& room();
  Gpu& gpu_;
  std::lock_guard<std::mutex> lock_;
  const KeptGpu kept_;
  std::vector<GraphNode>* nodes_ = nullptr;  // of the graph being captured
};

/// Later work of each turn runs after all work so far of all turns.
void meet(std::span<Turn* const> turns);
/// The same for later work of the first turn, whose GPU is current.
void gather(std::span<Turn* const> turns);
/// Later work of the other turns runs after all work so far of the first.
void spread(std::span<Turn* const> turns);
/// Captures what `ask` launches in the turns as a graph; anything else `ask` does happens now. The graph keeps the order on each GPU, and
/// between GPUs where they meet.
GraphHandle capture(std::span<Turn* const> turns, const std::function<void()>& ask, GraphNodes& nodes);

}  // namespace shardarray::cuda
