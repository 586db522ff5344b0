#define SHARDARRAY_GEMM_TABLE small_gemm_v3
#include "cpu/gemm_small.inc"
