// The launches of sorts: short lines by merge sort, long ones as pairs (pair_sort.h).
#pragma once
#include <cstdint>
#include <vector>

#include "cuda/launch.h"
#include "kernels/pairs.cuh"
#include "runtime/lines.h"

namespace shardarray::cuda {

/// Throws CompileError; `takes` names the supported dtypes.
[[noreturn]] void refuse_dtype(const char* what, DType t, const char* takes);

void add_sort(const Step& step, const LibraryCall& call, std::uint64_t, std::vector<KernelLaunch>& to);

/// The rows of a call's first operand [b, n], sorted by merges: device::SortEntry, line by line, for the next launches.
struct SortedEntries {
  std::vector<std::uint64_t> entries;  ///< scratch offsets, by item
  std::uint64_t scratch_bytes = 0;
};
SortedEntries add_sort_of_entries(const Step& step, const LibraryCall& call, std::vector<KernelLaunch>& to);

/// Whether lines of up to `length` elements, `elements` in all items, are sorted as pairs. A program with such a sort is not one kernel.
bool sorts_as_pairs(std::int64_t length, std::int64_t elements = 0);

/// The lines of all items of a step as pairs: the layout of their scratch memory.
class PairLines {
 public:
  /// `key_bits`: the element's part of a key.
  PairLines(const Step& step, const std::vector<Lines>& lines, std::uint32_t key_bits);
  /// An item's first element and first line, counted over all items.
  std::int64_t first(std::size_t item) const { return first_[item]; }
  std::int64_t first_line(std::size_t item) const { return first_line_[item]; }

  /// Where pairs are written, and where the sorted ones are. With 64-bit keys and several lines, the sorted keys are line numbers.
  const device::Pairs& unsorted() const { return unsorted_; }
  const device::Pairs& sorted() const { return sorted_; }
  /// The launches that sort them, after one that writes them.
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
