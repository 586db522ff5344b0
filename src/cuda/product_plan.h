// A call of cuBLASLt, described as the library wants it.
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
  CublasLt::Algorithm algorithm;  ///< chosen later, as `workspace`
  std::size_t workspace = 0;      ///< bytes that the algorithm needs
};
/// Throws CompileError where the library refuses a description.
ProductPlan describe_product(const CublasLt& library, ProductCall call);
/// What an algorithm of the call may rely on: alignment, up to so many bytes of workspace.
CublasLt::Preference product_preference(const CublasLt& library, const ProductCall& call,
                                        std::size_t most_workspace);
/// All that the choice of an algorithm depends on.
std::string algorithm_key(const CublasLt& library, const ProductCall& call, const std::string& gpu,
                          std::size_t most_workspace);
/// Puts the products into the stream; of a call by addresses each matrix is an array of them in the GPU's memory. `bias`: of a call
/// that has one. Returns the library's status.
int multiply(const CublasLt& library, CublasLt::Handle handle, const ProductPlan& plan, const void* first,
             const void* second, const void* bias, void* result, void* workspace, Stream stream);

}  // namespace shardarray::cuda
