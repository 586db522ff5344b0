// What messages say about the number of devices.
#pragma once
#include <string_view>

namespace shardarray {

/// How users set the number of virtual devices of a platform.
inline const char* what_sets_devices(std::string_view platform) {
  return platform == "cuda" ? "SHARDARRAY_CUDA_LOGICAL_DEVICES"
                            : "set_cpu_device_count, SHARDARRAY_CPU_DEVICES";
}

}  // namespace shardarray
