// Device ids as short texts.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "shardarray/device.h"

namespace shardarray {

/// Ascending ids as runs, in the syntax of Linux CPU lists: `0-3,8`; every fourth: `16-28:4`; the first 4 of every 16: `0-51:4/16`.
std::string id_runs(const std::vector<int>& ids, std::string_view separator = ",");
/// Devices of one platform: `cpu:0-3`.
std::string device_runs(const std::vector<Device>& devices);
/// Ascending ids by the process that owns the devices.
std::map<int, std::vector<int>> devices_by_process(const std::vector<Device>& devices);
/// `CPU`: a platform's name in pictures.
std::string upper_case(std::string platform);

}  // namespace shardarray
