// The launches of sorts: short lines by merging runs, long ones by the bits of their keys.
#pragma once
#include <cstdint>
#include <vector>

#include "cuda/launch.h"

namespace shardarray::cuda {

/// Throws CompileError: what `takes` names is all that there is.
[[noreturn]] void refuse_dtype(const char* what, DType t, const char* takes);

void add_sort(const Step& step, const LibraryCall& call, std::uint64_t, std::vector<KernelLaunch>& to);

/// The first operand's rows of a call [b, n], sorted: device::SortEntry, line by line, for launches that come next.
struct SortedEntries {
  std::vector<std::uint64_t> entries;  ///< bytes into scratch memory, by item
  std::uint64_t scratch_bytes = 0;
};
SortedEntries add_sort_of_entries(const Step& step, const LibraryCall& call, std::vector<KernelLaunch>& to);

/// Whether a sort of such lines goes by the bits of its keys. Such sorts are no part of a program that is one kernel.
bool sorts_by_bits(DType key, std::int64_t length);

}  // namespace shardarray::cuda
