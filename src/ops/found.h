// The first true positions of a mask, of fixed number.
#pragma once
#include <cstdint>

#include "ops/record.h"

namespace shardarray {

/// Throws ShapeError for a negative number of positions.
void need_size(const char* function, std::int64_t size);

/// The first `size` positions of true elements in a vector, padded with 0; `is_there` is false for padding.
struct Found {
  Array at, is_there;
};
Found found(const Array& flat, std::int64_t size);

}  // namespace shardarray
