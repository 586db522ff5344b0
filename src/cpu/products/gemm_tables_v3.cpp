#define SHARDARRAY_GEMM_TABLE table_gemm_v3
#include "cpu/products/gemm_tables.inc"
