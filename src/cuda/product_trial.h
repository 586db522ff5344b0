// A product on memory of its own, with the sum of its parts where it has some: how long it takes, and what it does to a NaN.
#pragma once
#include <cstddef>
#include <optional>

#include "cuda/backend.h"
#include "cuda/gpu.h"
#include "cuda/product_algorithms.h"
#include "cuda/product_parts.h"

namespace shardarray::cuda {

/// Memory on which a call is tried.
class ProductTrial {
 public:
  /// `workspace`: of the algorithm that needs most; `copied`: there is memory for a copy of the result. Throws OutOfMemory.
  ProductTrial(CudaBackend& backend, Gpu& gpu, ReadyProduct product, std::size_t workspace,
               bool copied = false);

  /// Seconds that a call takes, and a copy of its result where there is memory for it; infinity where the algorithm is refused.
  double time(Gpu& gpu, const CublasLt::Algorithm& algorithm, std::size_t workspace);
  /// Whether the results of NaNs in the first factor are NaN; none where the algorithm is refused. The memory has them from then on.
  /// Not of a call by addresses.
  std::optional<bool> keeps_nan(Gpu& gpu, const CublasLt::Algorithm& algorithm, std::size_t workspace);

 private:
  PartsSum sum_here() const;
  bool asked(Turn& turn) const;
  void* bias() const;

  /// Other programs have no use for blocks of these sizes.
  struct GivesBack {
    CudaBackend& backend;
    const Gpu& gpu;
    ~GivesBack() { backend.trim_for_launches(gpu); }
  };

  ReadyProduct product_;
  const GivesBack gives_back_;  // ends after what it gives back
  BufferRef memory_[3], addresses_[3], workspace_, bias_, copy_;
  BufferRef sum_, sum_table_;  // of parts
  KernelHandle sum_kernel_ = nullptr;
  Grid sum_grid_;
  std::size_t result_bytes_ = 0;
};

}  // namespace shardarray::cuda
