// What a program depends on beside its arguments.
#include <atomic>
#include <utility>

#include "base/env.h"
#include "shardarray/policy.h"
#include "shardarray/reproducible.h"
#include "transform/launch.h"

namespace shardarray {

static std::atomic<int> share_setting{-1};
bool share_replicas() {
  int s = share_setting.load(std::memory_order_relaxed);
  if (s < 0) {
    s = env_flag("SHARDARRAY_SHARE_REPLICAS", true) ? 1 : 0;
    share_setting.store(s, std::memory_order_relaxed);
  }
  return s == 1;
}
void set_share_replicas(bool on) { share_setting.store(on ? 1 : 0, std::memory_order_relaxed); }

static thread_local Policy policy_setting = Policy::auto_;
Policy current_policy() { return policy_setting; }
policy::Guard::Guard(Policy p) : previous_(std::exchange(policy_setting, p)) {}
policy::Guard::~Guard() { policy_setting = previous_; }
policy::auto_::auto_() : Guard(Policy::auto_) {}
policy::follow::follow() : Guard(Policy::follow) {}
policy::strict::strict() : Guard(Policy::strict) {}

static thread_local bool reproducible_setting = false;
bool is_reproducible() { return reproducible_setting; }
reproducible::reproducible(bool on) : previous_(std::exchange(reproducible_setting, on)) {}
reproducible::~reproducible() { reproducible_setting = previous_; }

}  // namespace shardarray
