#define SHARDARRAY_GEMM_TABLE own_gemm_v3
#include "cpu/products/own_gemm.inc"
