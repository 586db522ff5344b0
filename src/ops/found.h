// Where a mask is true, as so many positions.
#pragma once
#include <cstdint>

#include "ops/record.h"

namespace shardarray {

/// Throws ShapeError for a negative number of positions.
void need_size(const char* function, std::int64_t size);

/// The first `size` positions in a vector of what is true, 0 behind; `is_there`: before that.
struct Found {
  Array at, is_there;
};
Found found(const Array& flat, std::int64_t size);

}  // namespace shardarray
