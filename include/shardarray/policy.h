// Policies for operations whose operands have incompatible shardings.
#pragma once
#include <cstdint>

#include "shardarray/export.h"
#include "shardarray/where.h"

namespace shardarray {

enum class Policy : std::uint8_t;  // not part of the public interface

namespace policy {

/// Base of strict, follow and auto_: sets the policy for operations that this thread records while it lives, whenever their values are
/// read (a lazy value that may not be moved throws when read). Guards nest; a jitted function is traced once per policy of its callers.
class SHARDARRAY_API Guard {
 public:
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 protected:
  explicit Guard(Policy policy);
  ~Guard();

 private:
  Policy previous_;
};

/// The default: minimises the bytes moved, including neighbours' elements, then work; on GPUs, among plans that fit into device memory,
/// if any does. If an operation has more than 4,096 strategies, whole axes are considered first, then parts of them, and not all
/// combinations are compared: explain() says so beside the value.
///
///     sa::policy::auto_ here;
class SHARDARRAY_API auto_ : public Guard {
 public:
  auto_();
};
/// Propagation alone decides, by fixed priorities: the sharding of the larger operand wins, whatever it costs.
class SHARDARRAY_API follow : public Guard {
 public:
  follow();
};
/// Makes any transfer that the program did not ask for an error: compiling throws ShardingError, which names the operation, its source
/// line, the bytes and the cheapest fix. Asked for are the transfers needed
///   - to bring a value to the place given by filter_shard, a requested result sharding or the function's result;
///   - to change extents or order (slice, flip, roll, pad, concatenate) of a sharded dimension, or to scan one (cumsum, cummax),
///     if the result is given a place: `filter_shard(x[slice(1, none)], s)`. If nothing says where the result lies,
///     receiving neighbours' elements is refused;
///   - to perform an explicit collective (psum, all_gather, ppermute, all_to_all, ...; in vmap, pmap and shard_map), and to bring
///     its result, or what merely rearranges or reduces it, to where it is used.
///
///     sa::policy::strict here;
///     step(model, x, y);    // throws where a value would be moved silently
class SHARDARRAY_API strict : public Guard {
 public:
  strict();
};

/// While it lives, whatever this thread runs may take at most this many bytes per device, including arguments and results: the cheapest
/// plan that fits is chosen; if even the most frugal plan does not fit, the call throws OutOfMemory before anything runs, listing the
/// largest blocks and what would save most (require_memory of plan_lock.h). The innermost guard counts; 0: no limit. Throws Error for a
/// negative number.
///
///     sa::policy::budget here(std::int64_t{8} << 30);
class SHARDARRAY_API budget {
 public:
  explicit budget(std::int64_t bytes_per_device, Where w = Where::here());
  ~budget();
  budget(const budget&) = delete;
  budget& operator=(const budget&) = delete;

 private:
  std::int64_t previous_;
};

}  // namespace policy
}  // namespace shardarray
