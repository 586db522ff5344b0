#define SHARDARRAY_EXCHANGE_REDUCE exchange_reduce_baseline
#include "cpu/exchange/exchange_rows.inc"
