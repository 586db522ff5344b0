#define SHARDARRAY_GEMM_TABLE table_gemm_v4
#include "cpu/products/gemm_tables.inc"
