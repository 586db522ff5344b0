// What happens where the shardings of a program's values do not fit together.
#pragma once
#include <cstdint>

#include "shardarray/export.h"

namespace shardarray {

enum class Policy : std::uint8_t;

namespace policy {

/// Below strict, follow and auto_: sets the policy of this thread while it lives. Guards nest; it counts when a program is
/// compiled, and jit keeps the programs of different policies apart.
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

/// The default: what moves the fewest bytes, and least work.
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
/// A transfer that the program did not ask for (by a constraint or a requested result) is an error: compiling throws
/// ShardingError, which names the operation, its source line, the bytes and the cheapest fix.
///
///     sa::policy::strict here;
///     step(model, x, y);    // throws where a value would be moved silently
class SHARDARRAY_API strict : public Guard {
 public:
  strict();
};

}  // namespace policy
}  // namespace shardarray
