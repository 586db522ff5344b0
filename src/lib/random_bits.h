// Words of the generators as compositions of ops: threefry2x32 in JAX's two orders of counters, Philox in cuRAND's.
#pragma once
#include "ops/record.h"

namespace shardarray::random {

/// The mode of this thread; see random::partitionable.
bool is_partitionable();
/// The row-major position of every element. `t`: uint32 or uint64.
Array flat_position(const Shape& shape, DType t);
/// Throws unless `key` is uint32[2].
void check_key(const Array& key, const char* function);
/// Two words per element of `shape`, from the flat position of the element (64 bits).
Arrays words_by_position(const Array& key, const Shape& shape);
/// n words of JAX's older order: the counters 0..n-1, their first half paired with the second. n < 2^32.
Array words_by_halves(const Array& key, std::int64_t n, const char* function);
/// The two words for one 64-bit counter given as two uint32 scalars.
Arrays words_of(const Array& key, const Array& high, const Array& low);

/// The uint32 bits of the elements at these row-major positions (uint32 or uint64) in a draw of n elements.
Array bits_at(const Array& key, const Array& position, std::int64_t n);

/// See random::philox.
bool is_philox();
/// The same for Philox; positions are uint32, or uint64 in a draw of more than 2^32 elements.
Array philox_bits_at(const Array& key, const Array& position, DType dtype);
/// bits() for Philox.
Array philox_bits(const Array& key, const Shape& shape, DType dtype);

}  // namespace shardarray::random
