// One physical GPU: a stream, on which all is done in the order of asking, and what passes between it and the host.
//
// Nothing is torn down when the process ends. What fails after its call fails all that is asked of the GPU from then on.
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
/// Of a graph: by GPU, of each launch.
using GraphNodes = std::vector<std::vector<GraphNode>>;

/// The thread's calls are for whichever GPU they were for before when it goes: programs have calls of their own.
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
  /// The GPU number `number` of those that CUDA shows. Throws DeviceError.
  explicit Gpu(int number);
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  int number() const { return number_; }
  const GpuProperties& properties() const { return properties_; }
  /// Of the GPU; addresses that no host code may touch.
  MemorySource& memory() { return memory_; }
  /// Returns with the bytes.
  void read(void* to, const void* from, std::size_t bytes);
  /// A kernel of kernel_image(), or of a library. Throws DeviceError where there is none of that name.
  KernelHandle kernel(const char* name) { return kernel(name, library_); }
  KernelHandle kernel(const char* name, Library library);
  /// How many clusters of so many blocks of a kernel it can run at once.
  int clusters_at_once(KernelHandle kernel, std::uint32_t blocks, std::uint32_t threads);
  /// Its kernels may read the other one's memory from now on; false where the machine cannot do that.
  bool reach(const Gpu& other);
  /// Throws what the GPU is lost by, if it is.
  void throw_if_lost() const;
  /// From now on it is, unless it is already.
  void lose_by(const std::string& what);
  /// The thread's calls are for this GPU. Whoever calls it has a KeptGpu.
  void set();
  /// What a sort needs beside its pairs, in bytes.
  std::size_t sort_memory(const PairSort& sort);
  /// Compiled kernels, for good. Throws DeviceError where they are not for this GPU.
  Library load(const std::vector<char>& image);
  /// What make_room() does, from now on.
  void on_shortage(std::function<void()> give_back) { give_back_ = std::move(give_back); }
  /// CUDA and its libraries need memory beside the arrays: where there was none, what nobody uses goes back to the GPUs, and they are
  /// asked once more. Not under nccl_mutex().
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
  /// Pinned memory, and when the stream is done with it.
  struct Slot {
    static constexpr std::size_t bytes = std::size_t{1} << 20;
    std::byte* data = nullptr;
    Event free = nullptr;
    std::size_t used = 0;
    bool asked = false;  // `free` is in the stream

    std::size_t rest() const { return bytes - used; }
    /// The next n bytes, at most the rest.
    std::byte* take(std::size_t n) {
      std::byte* const next = data + used;
      used = std::min(bytes, used + (n + 15) / 16 * 16);
      return next;
    }
  };

  /// Throws what a call failed with; `step` is named. What stays failed stays thrown.
  void check(Status status, const char* call, const std::string& step = "");
  /// The same of a call for which CUDA may need memory: it is made once more where there was none.
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
  /// What the driver says when work is done, of an event or, null, of all that was asked for. Meanwhile a collective that does not end
  /// is given up. Of a lost GPU nothing is waited for.
  Status finish(Event event);
  void need(Slot& slot);
  Event take_event();
  void give_back(Event event) noexcept;

  const Driver& driver_;
  const int number_;
  GpuProperties properties_;
  GpuMemory memory_{*this};
  std::mutex turn_;                                // held from the first to the last request of one asker
  Stream stream_ = nullptr, capturing_ = nullptr;  // capturing_: on which nothing is ever done
  bool behind_kernel_ = false;  // what was asked last, of the one or the other, is one of ours
  Library library_ = nullptr;
  std::mutex reached_mutex_;
  std::set<int> reached_{number_};  // GPUs
  Event met_ = nullptr;             // where this GPU was when it last met others
  std::array<Slot, 8> ring_;        // within turns
  std::size_t filling_ = 0;         // the slot of it
  std::mutex reading_;              // of `down_`
  std::array<Slot, 2> down_;
  std::mutex events_mutex_;
  std::vector<Event> events_;  // that nobody uses
  mutable std::mutex lost_mutex_;
  std::atomic<bool> is_lost_ = false;
  std::string lost_;  // the first failure of work
  std::function<void()> give_back_;
};

/// A place in what a GPU was asked for, behind all that was asked for up to now. The thread has set the GPU.
class Mark {
 public:
  explicit Mark(Gpu& gpu) : gpu_(gpu), event_(gpu.take_event()) {}
  ~Mark() { gpu_.give_back(event_); }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  /// Within a turn.
  Status record() { return gpu_.driver_.event_record(event_, gpu_.stream_); }
  /// ok where all before it is done, not_ready, or what that failed with.
  Status status() const { return gpu_.driver_.event_query(event_); }
  /// Throws what a call failed with; `step` is named.
  void check(Status status, const char* call, const std::string& step) const {
    gpu_.check(status, call, step);
  }
  std::string failure(Status status, const char* call, const std::string& step) const {
    return gpu_.failure(status, call, step);
  }
  /// Returns when all before it is done; throws what the GPU is lost by.
  void wait(const std::string& step) const;

 private:
  Gpu& gpu_;
  const Event event_;
};

/// The right to ask: what others ask for comes before or after all that one turn asks for. Throws what the GPU is lost by.
class Turn {
 public:
  explicit Turn(Gpu& gpu);
  Gpu& gpu() const { return gpu_; }
  /// Several turns of a thread: this one's GPU is asked next.
  void here();
  /// From this GPU's memory to this GPU's memory.
  void copy(void* to, const void* from, std::size_t bytes);
  /// From the host, whose memory may be written again at once.
  void upload(void* to, const void* from, std::size_t bytes);
  void fill(void* p, unsigned char byte, std::size_t bytes);
  /// To the host, behind all that was asked for: returns with the bytes.
  void read(void* to, const void* from, std::size_t bytes);
  /// `step` is named where it fails.
  void launch(KernelHandle kernel, const Grid& grid, void** arguments, const std::string& step);
  /// In `memory`; `own`: what Gpu::sort_memory() says.
  void sort_pairs(const PairSort& sort, void* memory, void* own, std::size_t own_bytes,
                  const std::string& step);
  /// Where a library's call puts its work; throws what that failed with, by the library's name of it. `memory`: for lack of that.
  Stream library_stream() {
    gpu_.behind_kernel_ = false;
    return stream();
  }
  [[noreturn]] void fail(const char* call, const char* status, const std::string& step, bool memory);
  /// Returns when all that was asked for is done.
  void wait();
  /// Of all that was asked for up to now. `steps` are named where it fails.
  CompletionRef done(std::shared_ptr<const std::string> steps);

  /// Where this GPU is, for others to follow: it is asked next.
  void mark();
  /// What is asked of this GPU, which is asked next anyway, from now on is done after what the other one was asked for before its
  /// mark.
  void follow(const Turn& other);

 private:
  friend class Gpu;
  friend class LaunchGraph;
  friend GraphHandle capture(std::span<Turn* const> turns, const std::function<void()>& ask,
                             GraphNodes& nodes);
  Stream stream() const { return nodes_ != nullptr ? gpu_.capturing_ : gpu_.stream_; }
  /// With some rest.
  Gpu::Slot& room();
  Gpu& gpu_;
  std::lock_guard<std::mutex> lock_;
  const KeptGpu kept_;
  std::vector<GraphNode>* nodes_ = nullptr;  // of the graph that is being captured
};

/// What is asked for from now on is done after what all of the turns asked for up to now.
void meet(std::span<Turn* const> turns);
/// The same for the first of them alone, which is asked next.
void gather(std::span<Turn* const> turns);
/// What the others ask for from now on is done after what the first one asked for up to now.
void spread(std::span<Turn* const> turns);
/// What `ask` launches in the turns, and nothing else that it does, as a graph in place of being done. It follows the order of each
/// GPU, and theirs where they meet.
GraphHandle capture(std::span<Turn* const> turns, const std::function<void()>& ask, GraphNodes& nodes);

}  // namespace shardarray::cuda
