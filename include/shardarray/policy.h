// What happens where the shardings of a program's values do not fit together.
#pragma once
#include <cstdint>

#include "shardarray/export.h"
#include "shardarray/where.h"

namespace shardarray {

enum class Policy : std::uint8_t;  // below the public surface

namespace policy {

/// Below strict, follow and auto_: sets the policy of this thread's lines while it lives. It holds where a line stands, not
/// where its value is asked for (a lazy value that may not be moved throws when it is read). Guards nest; a jitted function
/// is traced once for each policy of its callers.
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

/// The default: what moves the fewest bytes, neighbours' elements included, and least work; on GPUs, of what fits into a device's
/// memory, if anything does. Where one operation has more than 4,096 strategies, axes are moved together first, then parts of them, and
/// not all are compared: explain() says so beside the value.
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
/// A transfer that the program did not ask for is an error: compiling throws ShardingError, which names the operation, its
/// source line, the bytes and the cheapest fix. Asked for is what it takes
///   - to bring a value to the place that filter_shard, a requested result or the function's result gives it;
///   - to change extents or order (slice, flip, roll, pad, concatenate) of a dimension that is cut, or to scan one (cumsum, cummax),
///     when the result is given that place: `filter_shard(x[slice(1, none)], s)`. Where nothing says where the result lies,
///     neighbours' elements that come over are refused;
///   - to do what a collective says (psum, all_gather, ppermute, all_to_all, ...; in vmap, pmap and shard_map), and to bring
///     what it gives, and what is only rearranged or reduced of that, to where it is used.
///
///     sa::policy::strict here;
///     step(model, x, y);    // throws where a value would be moved silently
class SHARDARRAY_API strict : public Guard {
 public:
  strict();
};

/// While it lives, what this thread runs may take so many bytes of a device at most, arguments and results included: of what fits the
/// cheapest plan is taken, and where the plan that needs least does not fit the call throws OutOfMemory before anything runs, with the
/// largest pieces and what would save most (plan_lock.h's require_memory). The innermost guard counts; 0: no limit. Throws Error for
/// a negative number.
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
