// Which algorithm of cuBLASLt makes which product on which GPU: its first guess, or for large products the fastest of its guesses.
#pragma once
#include <vector>

#include "cuda/backend.h"
#include "cuda/gpu.h"
#include "cuda/product_plan.h"

namespace shardarray::cuda {

/// A call that can be made.
struct ReadyProduct {
  const CublasLt* library = nullptr;
  CublasLt::Handle handle = nullptr;
  ProductPlan plan;
};
/// The calls with their algorithms, or those of parts of their depth in their place; a call by addresses that the library does not do is a call of each product. Empty where the own
/// kernel must make them: the library is not there, or has no algorithm for one of them, which is said once on stderr.
std::vector<ReadyProduct> ready_products(CudaBackend& backend, Gpu& gpu,
                                         const std::vector<ProductCall>& calls);
/// The same products with what a loop makes of them, where each of these calls was found to be faster than the plain one and a copy
/// of its result, which is the least that the loop costs: once for each, of large products alone, by trying. Else empty.
std::vector<ReadyProduct> ready_epilogues(CudaBackend& backend, Gpu& gpu,
                                          const std::vector<ReadyProduct>& plain,
                                          const std::vector<ProductCall>& calls);

}  // namespace shardarray::cuda
