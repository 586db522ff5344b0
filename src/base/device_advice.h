// What messages say of the number of devices.
#pragma once
#include <string_view>

namespace shardarray {

/// By what users say how many virtual devices a platform has.
inline const char* what_sets_devices(std::string_view platform) {
  return platform == "cuda" ? "SHARDARRAY_CUDA_LOGICAL_DEVICES"
                            : "set_cpu_device_count, SHARDARRAY_CPU_DEVICES";
}

}  // namespace shardarray
