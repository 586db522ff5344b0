#define SHARDARRAY_GEMM_TABLE small_gemm_baseline
#include "cpu/products/gemm_small.inc"
