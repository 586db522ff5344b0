// Which memory each item of a step reads and writes, for backends that run items concurrently.
#pragma once
#include <vector>

#include "runtime/memory_range.h"
#include "runtime/program.h"

namespace shardarray {

/// The tile that contains `r`, which is `first` bytes after its start.
inline MemoryRange tile_range(const Ref& r, std::uint64_t first, std::uint64_t bytes) {
  return {r.base, r.offset - first, r.offset - first + bytes};
}

/// Strides in elements.
Shape row_major(const Shape& shape);
/// Whether a box with these strides is contiguous.
bool is_packed(const Shape& extents, const Shape& strides);
/// Whether all points read the same element.
bool is_one_element(const LoopArg& a);

/// Whether the data already is in place, so that nothing has to be moved.
bool lies_there(const Exchange::Piece& p);

using MemoryRanges = std::vector<MemoryRange>;
struct ItemRanges {
  MemoryRanges reads, writes;
};
ItemRanges ranges_of(const Loop& loop, const Loop::Item& item);
ItemRanges ranges_of(const Gemm& gemm, const Gemm::Item& item);
ItemRanges ranges_of(const LibraryCall& x, const LibraryCall::Item& item);
ItemRanges ranges_of(const Exchange& x, const Exchange::Item& item);
/// Of all runs; excludes reads of what other runs wrote.
ItemRanges ranges_of(const ProgramCall& x, const ProgramCall::Item& item);
ItemRanges ranges_of(const ProgramChoice& x, const ProgramChoice::Item& item);
ItemRanges ranges_of(const ProgramLoop& x, const ProgramLoop::Item& item);

/// Ranges of which the item writes every byte; may be incomplete.
MemoryRanges written_wholly(const Loop& loop, const Loop::Item& item);
MemoryRanges written_wholly(const Gemm& gemm, const Gemm::Item& item);
MemoryRanges written_wholly(const LibraryCall& x, const LibraryCall::Item& item);
MemoryRanges written_wholly(const Exchange& x, const Exchange::Item& item);
/// Those of all its items; empty for steps that call programs.
MemoryRanges written_wholly(const Step& step);

}  // namespace shardarray
