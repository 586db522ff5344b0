#define SHARDARRAY_GEMM_TABLE small_gemm_baseline
#include "cpu/gemm_small.inc"
