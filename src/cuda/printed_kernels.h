// Kernels that are printed, compiled and loaded for a program, which runs without them until they are ready.
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

  /// Builds them now if SHARDARRAY_CODEGEN says `always`, else after enough runs. If that fails, the program goes on without them, which is
  /// reported on stderr, once per kind.
  void begin();
  /// Counts a run; after enough of them a background thread builds, one program after another. Programs that are gone by then are skipped.
  void count_run();
  /// As if all but one of the runs needed had been counted.
  void expect_runs();
  /// Whether building failed.
  bool has_failed() const { return failed_.load(std::memory_order_acquire); }

 protected:
  /// `without`: what happens instead, for messages; one text per kind.
  explicit PrintedKernels(const char* without) : without_(without) {}

 private:
  /// Prints, compiles (or takes from the disk cache) and loads all of them; once, in one thread. Throws CompileError, DeviceError.
  virtual void build() = 0;
  void build_or_say();

  const char* without_;
  std::atomic<int> runs_until_asked_{0};
  std::atomic<bool> failed_ = false;
  friend class BuildThread;
};

/// A text's kernels on a GPU, which stay loaded; compiled unless they are in memory or on disk.
Library loaded_text(Gpu& gpu, const std::string& text);

}  // namespace shardarray::cuda
