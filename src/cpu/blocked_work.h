// BlockedWork: works over the same elements that follow one another. They run block by block, so that what one has read or written
// is still in the cache for the next: an all-reduce with what is computed before and behind it reads memory once and writes
// it once.
#pragma once
#include <deque>
#include <span>
#include <vector>

#include "cpu/work_list.h"

namespace shardarray {

class BlockedWork {
 public:
  /// What a block touches: half of a small second-level cache; and how many elements it has at least, or its calls cost too much.
  static constexpr std::int64_t block_bytes = 128 << 10, least_block = 512;
  /// Works that touch less find it in the cache anyway.
  static constexpr std::int64_t least_bytes = 1 << 20;

  /// Puts one work in the place of neighbours that gain by it; `store` keeps what it runs.
  static void join(std::vector<Work>& works, std::deque<BlockedWork>& store);

  /// These touch so many bytes, shared ones counted once.
  BlockedWork(std::span<const Work> works, std::int64_t bytes);
  std::int64_t units() const;
  double cost_ns() const { return cost_ns_; }
  /// Blocks [begin, end) through all passes.
  void run(void* const* bases, std::int64_t begin, std::int64_t end) const;

 private:
  struct Pass {
    Task units;
    std::int64_t grain;
  };
  std::vector<Pass> passes_;
  std::int64_t elements_, block_ = 0;
  double cost_ns_ = 0;
};

}  // namespace shardarray
