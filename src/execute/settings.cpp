// What a program depends on beside its arguments.
#include <atomic>

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

reproducible::reproducible(bool on) : ModeGuard(&Modes::reproducible, on) {}
tf32::tf32(bool on) : ModeGuard(&Modes::tf32, on) {}
flush_denormals::flush_denormals(bool on) : ModeGuard(&Modes::flush_denormals, on) {}

}  // namespace shardarray
