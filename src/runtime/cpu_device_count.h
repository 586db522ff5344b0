// How many virtual CPU devices there are: chosen once, by set_cpu_device_count() or the environment.
#pragma once

namespace shardarray {

/// Fixed from now on.
int cpu_device_count();

}  // namespace shardarray
