#define SHARDARRAY_GEMM_TABLE table_gemm_baseline
#include "cpu/products/gemm_tables.inc"
