// Runs a product on memory of its own, with the sum of its parts if it is split: how long it takes, and whether it keeps NaN.
#pragma once
#include <cstddef>
#include <optional>

#include "cuda/backend.h"
#include "cuda/gpu.h"
#include "cuda/product_algorithms.h"
#include "cuda/product_parts.h"

namespace shardarray::cuda {

/// Memory to try a call on.
class ProductTrial {
 public:
  /// `workspace`: of the algorithm that needs most; `copied`: with memory for a copy of the result. Throws OutOfMemory.
  ProductTrial(CudaBackend& backend, Gpu& gpu, ReadyProduct product, std::size_t workspace,
               bool copied = false);

  /// Seconds per call, with the copy of its result if there is memory for it; infinity if the algorithm is refused.
  double time(Gpu& gpu, const CublasLt::Algorithm& algorithm, std::size_t workspace);
  /// Whether NaNs in the first factor give NaN results; none if the algorithm is refused. Overwrites the factor. Not for pointer-array
  /// calls.
  std::optional<bool> keeps_nan(Gpu& gpu, const CublasLt::Algorithm& algorithm, std::size_t workspace);

 private:
  PartsSum sum_here() const;
  bool asked(Turn& turn) const;
  void* bias() const;

  /// Other programs cannot reuse blocks of these sizes.
  struct GivesBack {
    CudaBackend& backend;
    const Gpu& gpu;
    ~GivesBack() { backend.trim_for_launches(gpu); }
  };

  ReadyProduct product_;
  const GivesBack gives_back_;  // declared first, destroyed after the buffers
  BufferRef memory_[3], addresses_[3], workspace_, bias_, copy_;
  BufferRef sum_, sum_table_;  // of the parts
  KernelHandle sum_kernel_ = nullptr;
  Grid sum_grid_;
  std::size_t result_bytes_ = 0;
};

}  // namespace shardarray::cuda
