// Times of transfers over a machine's links.
#pragma once
#include <vector>

#include "runtime/program.h"
#include "shardarray/machine.h"

namespace shardarray {

/// Device numbers on a machine: ids for its own devices; other devices are numbered in order.
std::vector<int> numbers_on(const Machine& m, const std::vector<Device>& devices);

/// Seconds of a transfer, all its runs, between devices with these numbers (by position). Collectives over groups that span several levels
/// of links are hierarchical, so that the slowest links carry the least; other transfers take the slowest links between their devices.
double transfer_seconds(const Transfer& t, const std::vector<int>& numbers, const Machine& m);

/// The same for devices of a described machine; 0 for others, whose rates are unknown.
double described_seconds(const Transfer& t, const DeviceOrder& order);

}  // namespace shardarray
