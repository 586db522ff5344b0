// What happens where the shardings of a program's values do not fit together.
#pragma once
#include <cstdint>

#include "shardarray/export.h"

namespace shardarray::policy {

/// Below strict, follow and auto_: sets the policy of this thread while it lives. Guards nest; it counts when a program is
/// compiled, and jit keeps the programs of different policies apart.
class SHARDARRAY_API Guard {
 public:
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 protected:
  explicit Guard(std::uint8_t policy);
  ~Guard();

 private:
  std::uint8_t previous_;
};

/// The default: what moves the fewest bytes, and least work.
///
///     sa::policy::auto_ here;
class auto_ : public Guard {
 public:
  auto_() : Guard(0) {}
};
/// Propagation alone decides, by fixed priorities: the sharding of the larger operand wins, whatever it costs.
class follow : public Guard {
 public:
  follow() : Guard(1) {}
};
/// A transfer that the program did not ask for (by a constraint or a requested result) is an error: compiling throws
/// ShardingError, which names the operation, its source line, the bytes and the cheapest fix.
///
///     sa::policy::strict here;
///     step(model, x, y);    // throws where a value would be moved silently
class strict : public Guard {
 public:
  strict() : Guard(2) {}
};

}  // namespace shardarray::policy
