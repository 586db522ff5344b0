// Ids of devices as short texts.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "shardarray/device.h"

namespace shardarray {

/// Ascending ids as runs, as lists of CPUs are written on Linux: `0-3,8`; every fourth as `16-28:4`; of every 16 the first 4 as
/// `0-51:4/16`.
std::string id_runs(const std::vector<int>& ids, std::string_view separator = ",");
/// Devices of one platform: `cpu:0-3`.
std::string device_runs(const std::vector<Device>& devices);
/// Ids, ascending, by the process that has the devices.
std::map<int, std::vector<int>> devices_by_process(const std::vector<Device>& devices);
/// `CPU`: how pictures name a platform.
std::string upper_case(std::string platform);

}  // namespace shardarray
