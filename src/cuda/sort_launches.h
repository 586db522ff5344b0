// The launches of sorts: short lines by merging runs, long ones as pairs (pair_sort.h).
#pragma once
#include <cstdint>
#include <vector>

#include "cuda/launch.h"
#include "kernels/pairs.cuh"
#include "runtime/lines.h"

namespace shardarray::cuda {

/// Throws CompileError: what `takes` names is all that there is.
[[noreturn]] void refuse_dtype(const char* what, DType t, const char* takes);

void add_sort(const Step& step, const LibraryCall& call, std::uint64_t, std::vector<KernelLaunch>& to);

/// The first operand's rows of a call [b, n], sorted by merges: device::SortEntry, line by line, for launches that come next.
struct SortedEntries {
  std::vector<std::uint64_t> entries;  ///< bytes into scratch memory, by item
  std::uint64_t scratch_bytes = 0;
};
SortedEntries add_sort_of_entries(const Step& step, const LibraryCall& call, std::vector<KernelLaunch>& to);

/// Whether lines of up to `length` elements, so many in all items, are sorted as pairs. Such sorts are no part of a program that is one
/// kernel.
bool sorts_as_pairs(std::int64_t length, std::int64_t elements = 0);

/// The lines of a step's items one after the other, as pairs: what becomes of their memory.
class PairLines {
 public:
  /// `key_bits`: of an element's part of a key.
  PairLines(const Step& step, const std::vector<Lines>& lines, std::uint32_t key_bits);
  /// Of an item: its first element and its first line, in those of all items.
  std::int64_t first(std::size_t item) const { return first_[item]; }
  std::int64_t first_line(std::size_t item) const { return first_line_[item]; }

  /// Where they are written, and where they are sorted. Of several lines with keys of 64 bits the sorted keys are lines.
  const device::Pairs& unsorted() const { return unsorted_; }
  const device::Pairs& sorted() const { return sorted_; }
  /// What sorts them, behind a launch that writes them.
  void add_sort(std::vector<KernelLaunch>& to);
  std::uint64_t scratch_bytes() const { return scratch_; }

 private:
  void add(const PairSort& sort, std::vector<KernelLaunch>& to) const;
  std::uint64_t take_scratch(std::uint64_t bytes);

  const Step& step_;
  std::vector<Lines> items_;
  std::vector<std::int64_t> first_, first_line_;
  std::int64_t count_ = 0, lines_ = 0;
  std::uint64_t scratch_ = 0;
  device::Pairs unsorted_{}, sorted_{};
};

}  // namespace shardarray::cuda
