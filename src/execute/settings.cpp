// Settings that programs depend on, besides their arguments.
#include <atomic>
#include <utility>

#include "base/env.h"
#include "execute/launch.h"
#include "runtime/modes.h"
#include "shardarray/flush_denormals.h"
#include "shardarray/policy.h"
#include "shardarray/reproducible.h"
#include "shardarray/tf32.h"

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

static Policy exchange_policy(Policy p) {
  Modes m = current_modes();
  m.policy = p;
  return set_modes(m).policy;
}
policy::Guard::Guard(Policy p) : previous_(exchange_policy(p)) {}
policy::Guard::~Guard() { exchange_policy(previous_); }
policy::auto_::auto_() : Guard(Policy::auto_) {}
policy::follow::follow() : Guard(Policy::follow) {}
policy::strict::strict() : Guard(Policy::strict) {}

static thread_local std::int64_t budget_of_thread = 0;
std::int64_t memory_budget() { return budget_of_thread; }
policy::budget::budget(std::int64_t bytes_per_device, Where w) {
  const Site site(w, "policy::budget");
  if (bytes_per_device < 0)
    throw Error("policy::budget: " + std::to_string(bytes_per_device) +
                " bytes. A device has some, 0 means no limit. Give what it has.");
  previous_ = std::exchange(budget_of_thread, bytes_per_device);
}
policy::budget::~budget() { budget_of_thread = previous_; }

reproducible::reproducible(bool on) : ModeGuard(&Modes::reproducible, on) {}
tf32::tf32(bool on) : ModeGuard(&Modes::tf32, on) {}
flush_denormals::flush_denormals(bool on) : ModeGuard(&Modes::flush_denormals, on) {}

}  // namespace shardarray
