// An item of an Exchange step that moves a few elements on one device.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/program.h"

namespace shardarray {

struct MoveSpec {
  /// Strides in elements; extents are not zero.
  struct Piece {
    Shape extents, src_strides, dst_strides;
  };
  std::int64_t itemsize = 4;
  std::int64_t filled = 0;  ///< elements of the destination that are filled first
  std::uint64_t fill_bits = 0;
  std::vector<Piece> pieces;

  /// Equal words, equal code; never equal to another kind of spec's key.
  std::vector<std::uint64_t> key() const;
};

}  // namespace shardarray
