// Checks the call table (libraries.h) against cuBLASLt's own header, if that is present; contains no code.
#if __has_include(<cublasLt.h>)
#include <cublasLt.h>

#include <cstddef>

#include "cuda/libraries.h"
#include "cuda/same_call.h"

namespace shardarray::cuda {
namespace {

#define SHARDARRAY_SAME(member, call) \
  static_assert(same_call(decltype(CublasLt::member){}, static_cast<decltype(&(call))>(nullptr)))
SHARDARRAY_SAME(version, cublasLtGetVersion);
SHARDARRAY_SAME(create, cublasLtCreate);
SHARDARRAY_SAME(status_name, cublasLtGetStatusName);
SHARDARRAY_SAME(product_init, cublasLtMatmulDescInit_internal);
SHARDARRAY_SAME(product_set, cublasLtMatmulDescSetAttribute);
SHARDARRAY_SAME(layout_init, cublasLtMatrixLayoutInit_internal);
SHARDARRAY_SAME(layout_set, cublasLtMatrixLayoutSetAttribute);
SHARDARRAY_SAME(preference_init, cublasLtMatmulPreferenceInit_internal);
SHARDARRAY_SAME(preference_set, cublasLtMatmulPreferenceSetAttribute);
SHARDARRAY_SAME(find_algorithms, cublasLtMatmulAlgoGetHeuristic);
SHARDARRAY_SAME(check_algorithm, cublasLtMatmulAlgoCheck);
SHARDARRAY_SAME(multiply, cublasLtMatmul);
#undef SHARDARRAY_SAME

static_assert(CUBLAS_STATUS_SUCCESS == 0 && CublasLt::no_memory == CUBLAS_STATUS_ALLOC_FAILED);
static_assert(CublasLt::real32 == CUDA_R_32F && CublasLt::real64 == CUDA_R_64F &&
              CublasLt::real16 == CUDA_R_16F && CublasLt::brain16 == CUDA_R_16BF);
static_assert(CublasLt::compute32 == CUBLAS_COMPUTE_32F && CublasLt::compute64 == CUBLAS_COMPUTE_64F &&
              CublasLt::compute_tf32 == CUBLAS_COMPUTE_32F_FAST_TF32);
static_assert(CublasLt::transpose_first == CUBLASLT_MATMUL_DESC_TRANSA &&
              CublasLt::transpose_second == CUBLASLT_MATMUL_DESC_TRANSB && CUBLAS_OP_N == 0 &&
              CUBLAS_OP_T == 1);
static_assert(CublasLt::epilogue == CUBLASLT_MATMUL_DESC_EPILOGUE &&
              CublasLt::relu == CUBLASLT_EPILOGUE_RELU && CublasLt::bias == CUBLASLT_EPILOGUE_BIAS &&
              (CublasLt::relu | CublasLt::bias) == CUBLASLT_EPILOGUE_RELU_BIAS &&
              CublasLt::bias_address == CUBLASLT_MATMUL_DESC_BIAS_POINTER &&
              CublasLt::bias_offset == CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE);
static_assert(CublasLt::batch_count == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT &&
              CublasLt::batch_offset == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET &&
              CublasLt::batch_mode == CUBLASLT_MATRIX_LAYOUT_BATCH_MODE &&
              CUBLASLT_BATCH_MODE_POINTER_ARRAY == 1);
static_assert(CublasLt::reduction_schemes == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK &&
              CublasLt::in_compute_type == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
static_assert(CublasLt::most_workspace == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES &&
              CublasLt::least_alignment[0] == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES &&
              CublasLt::least_alignment[1] == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES &&
              CublasLt::least_alignment[2] == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES &&
              CublasLt::least_alignment[3] == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);

using Found = cublasLtMatmulHeuristicResult_t;
using Ours = CublasLt::Candidate;
static_assert(sizeof(CublasLt::Product) == sizeof(cublasLtMatmulDescOpaque_t) &&
              sizeof(CublasLt::Layout) == sizeof(cublasLtMatrixLayoutOpaque_t) &&
              sizeof(CublasLt::Preference) == sizeof(cublasLtMatmulPreferenceOpaque_t));
static_assert(sizeof(CublasLt::Algorithm) == sizeof(cublasLtMatmulAlgo_t) && sizeof(Ours) == sizeof(Found));
static_assert(offsetof(Ours, algorithm) == offsetof(Found, algo) &&
              offsetof(Ours, workspace) == offsetof(Found, workspaceSize) &&
              offsetof(Ours, status) == offsetof(Found, state) &&
              offsetof(Ours, waves) == offsetof(Found, wavesCount));

}  // namespace
}  // namespace shardarray::cuda
#endif
