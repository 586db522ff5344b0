#define SHARDARRAY_GEMM_TABLE small_gemm_v3
#include "cpu/products/gemm_small.inc"
