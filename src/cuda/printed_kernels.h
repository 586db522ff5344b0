// Kernels that are printed, compiled and loaded for a program: what runs without them runs until they are ready.
#pragma once
#include <atomic>
#include <memory>
#include <string>

#include "cuda/gpu.h"

namespace shardarray::cuda {

class PrintedKernels : public std::enable_shared_from_this<PrintedKernels> {
 public:
  virtual ~PrintedKernels() = default;
  PrintedKernels(const PrintedKernels&) = delete;
  PrintedKernels& operator=(const PrintedKernels&) = delete;

  /// Builds them now where SHARDARRAY_CODEGEN says `always`; else there must be enough runs first. What cannot be built stays
  /// with what runs without, which is said on stderr, once of each kind.
  void begin();
  /// That a run has begun: enough of them ask a thread of its own, which builds for one program after the other. A program that is
  /// gone by then is left out.
  void count_run();
  /// As if there had been enough but for one.
  void expect_runs();
  /// They could not be built.
  bool has_failed() const { return failed_.load(std::memory_order_acquire); }

 protected:
  /// `without`: what is done without them, for messages; of its kind.
  explicit PrintedKernels(const char* without) : without_(without) {}

 private:
  /// Prints, compiles (or finds on the disk) and loads all of them; once, by one thread. Throws CompileError, DeviceError.
  virtual void build() = 0;
  void build_or_say();

  const char* without_;
  std::atomic<int> runs_until_asked_{0};
  std::atomic<bool> failed_ = false;
  friend class BuildThread;
};

/// The kernels of a text on a GPU, which stay loaded; compiled where they are neither in memory nor on the disk.
Library loaded_text(Gpu& gpu, const std::string& text);

}  // namespace shardarray::cuda
