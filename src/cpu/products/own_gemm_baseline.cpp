#define SHARDARRAY_GEMM_TABLE own_gemm_baseline
#include "cpu/products/own_gemm.inc"
