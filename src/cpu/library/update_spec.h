// An item of the library call `update` (runtime/program.h).
#pragma once
#include <cstdint>
#include <vector>

#include "base/reducer.h"
#include "runtime/program.h"

namespace shardarray {

struct UpdateSpec {
  /// After the batch dimension.
  struct Dim {
    std::int64_t n = 1, m = 1;          ///< sizes of x and of the part
    bool moves = false;                 ///< else the part starts where x does
    DType index = DType::int32;         ///< of the operand with the part's start, if it moves
    std::int64_t first = 0;             ///< likewise: global index of the tile's first element
    std::int64_t x_step = 0, step = 0;  ///< strides of x and of the part, in bytes
  };
  DType type = DType::float32;
  Reducer reducer = Reducer::none;
  std::int64_t batch = 1;
  std::int64_t x_bytes = 0, part_bytes = 0;  ///< per batch entry
  std::vector<Dim> dims;

  /// Of the trailing dimensions along which the part covers x, so that both are contiguous.
  std::int64_t row_bytes() const;
  /// Equal words, equal code; never equal to another kind of spec's key.
  std::vector<std::uint64_t> key() const;
};
UpdateSpec update_spec(const LibraryCall& call, const LibraryCall::Item& item);
/// Whether x is overwritten where it is.
inline bool updates_in_place(const LibraryCall::Item& item) {
  return item.out[0].base == item.in[0].base && item.out[0].offset == item.in[0].offset;
}

}  // namespace shardarray
