// Which memory each item of a step reads and writes, for backends that run items side by side.
#pragma once
#include <vector>

#include "runtime/memory_range.h"
#include "runtime/program.h"

namespace shardarray {

/// The tile around `r`, which is `first` bytes behind its beginning.
inline MemoryRange tile_range(const Ref& r, std::uint64_t first, std::uint64_t bytes) {
  return {r.base, r.offset - first, r.offset - first + bytes};
}

/// Strides in elements, the last dimension in a row.
Shape row_major(const Shape& shape);
/// Whether a box with these strides lies in a row.
bool is_packed(const Shape& extents, const Shape& strides);
/// Whether it is the same element at all points.
bool is_one_element(const LoopArg& a);

/// Whether what it moves lies in its place already, so that nothing is to be done.
bool lies_there(const Exchange::Piece& p);

using MemoryRanges = std::vector<MemoryRange>;
struct ItemRanges {
  MemoryRanges reads, writes;
};
ItemRanges ranges_of(const Loop& loop, const Loop::Item& item);
ItemRanges ranges_of(const Gemm& gemm, const Gemm::Item& item);
ItemRanges ranges_of(const LibraryCall& x, const LibraryCall::Item& item);
ItemRanges ranges_of(const Exchange& x, const Exchange::Item& item);
/// Of all runs; what one run reads of another one's is not among the reads.
ItemRanges ranges_of(const ProgramCall& x, const ProgramCall::Item& item);
ItemRanges ranges_of(const ProgramChoice& x, const ProgramChoice::Item& item);
ItemRanges ranges_of(const ProgramLoop& x, const ProgramLoop::Item& item);

/// Ranges of which the item writes every byte. There may be more.
MemoryRanges written_wholly(const Loop& loop, const Loop::Item& item);
MemoryRanges written_wholly(const Gemm& gemm, const Gemm::Item& item);
MemoryRanges written_wholly(const LibraryCall& x, const LibraryCall::Item& item);
MemoryRanges written_wholly(const Exchange& x, const Exchange::Item& item);
/// Those of all its items; none of what calls programs.
MemoryRanges written_wholly(const Step& step);

}  // namespace shardarray
