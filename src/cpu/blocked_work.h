// BlockedWork: consecutive works over the same elements, run block by block, so that what one has read or written is still in cache for the
// next: an all-reduce fused with the computations around it reads and writes memory once.
#pragma once
#include <deque>
#include <span>
#include <vector>

#include "cpu/work_list.h"

namespace shardarray {

class BlockedWork {
 public:
  /// Bytes that a block touches: half of a small L2 cache. And its least elements, below which calls cost too much.
  static constexpr std::int64_t block_bytes = 128 << 10, least_block = 512;
  /// Smaller works find their data in the cache anyway.
  static constexpr std::int64_t least_bytes = 1 << 20;

  /// Replaces consecutive works that gain by it with one work each; `store` owns what it runs.
  static void join(std::vector<Work>& works, std::deque<BlockedWork>& store);

  /// The works touch so many bytes, shared ones counted once.
  BlockedWork(std::span<const Work> works, std::int64_t bytes);
  std::int64_t units() const;
  double cost_ns() const { return cost_ns_; }
  /// Runs blocks [begin, end) through all passes.
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
