#define SHARDARRAY_GEMM_TABLE own_gemm_v4
#include "cpu/products/own_gemm.inc"
