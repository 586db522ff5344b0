// The descriptors of a cuBLASLt call.
#pragma once
#include <cstddef>
#include <string>

#include "cuda/libraries.h"
#include "cuda/products.h"

namespace shardarray::cuda {

struct ProductPlan {
  ProductCall call;
  CublasLt::Product product;
  CublasLt::Layout first, second, result;
  CublasLt::Algorithm algorithm;  ///< chosen later, like `workspace`
  std::size_t workspace = 0;      ///< bytes that the algorithm needs
};
/// Throws CompileError where the library refuses a description.
ProductPlan describe_product(const CublasLt& library, ProductCall call);
/// What an algorithm may assume: the call's alignment and at most `most_workspace` bytes.
CublasLt::Preference product_preference(const CublasLt& library, const ProductCall& call,
                                        std::size_t most_workspace);
/// Everything that the choice of an algorithm depends on.
std::string algorithm_key(const CublasLt& library, const ProductCall& call, const std::string& gpu,
                          std::size_t most_workspace);
/// Enqueues the products; in a pointer-array call each matrix is an array of addresses in device memory. `bias`: if the call has one.
/// Returns the library's status.
int multiply(const CublasLt& library, CublasLt::Handle handle, const ProductPlan& plan, const void* first,
             const void* second, const void* bias, void* result, void* workspace, Stream stream);

}  // namespace shardarray::cuda
