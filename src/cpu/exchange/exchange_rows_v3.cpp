#define SHARDARRAY_EXCHANGE_REDUCE exchange_reduce_v3
#include "cpu/exchange/exchange_rows.inc"
