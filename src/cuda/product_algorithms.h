// Chooses cuBLASLt's algorithm for each product and GPU: its first guess, or, for large products, the fastest of its guesses.
#pragma once
#include <vector>

#include "cuda/backend.h"
#include "cuda/gpu.h"
#include "cuda/product_plan.h"

namespace shardarray::cuda {

/// A call that is ready to be made.
struct ReadyProduct {
  const CublasLt* library = nullptr;
  CublasLt::Handle handle = nullptr;
  ProductPlan plan;
};
/// The calls with their algorithms, or split into parts of their depth if that is faster; a pointer-array call that the library does not
/// support becomes one call per product. Empty if our own kernel must do them: the library is missing, or lacks an algorithm for one of
/// them, which is reported once on stderr.
std::vector<ReadyProduct> ready_products(CudaBackend& backend, Gpu& gpu,
                                         const std::vector<ProductCall>& calls);
/// The same products fused with the loop after them, if each fused call was measured to be faster than the plain one plus a copy of its
/// result, the least that the loop costs. Each is measured once, and only for large products. Else empty.
std::vector<ReadyProduct> ready_epilogues(CudaBackend& backend, Gpu& gpu,
                                          const std::vector<ReadyProduct>& plain,
                                          const std::vector<ProductCall>& calls);

}  // namespace shardarray::cuda
