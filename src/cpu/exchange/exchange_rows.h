// The inner loops of exchanges.
#pragma once
#include <cstdint>

#include "base/reducer.h"
#include "shardarray/dtype.h"

namespace shardarray {

/// n elements of the destination from the sources, each read at `offset` bytes from its start. The destination may be one of the sources.
struct ExchangeRow {
  const char* const* sources;
  std::int64_t source_count, offset;
  char* dst;
  std::int64_t n, src_stride, dst_stride;  // elements
};
using ExchangeRowFunction = void (*)(const ExchangeRow& row);

/// Combines the sources, at least two, in order. Null for a dtype that the reducer does not support. Compiled for every CPU and for
/// x86-64-v3, with the same bits.
ExchangeRowFunction exchange_reduce_baseline(Reducer reducer, DType t);
ExchangeRowFunction exchange_reduce_v3(Reducer reducer, DType t);

}  // namespace shardarray
