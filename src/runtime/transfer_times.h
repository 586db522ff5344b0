// How long transfers take over a machine's links.
#pragma once
#include <vector>

#include "runtime/program.h"
#include "shardarray/machine.h"

namespace shardarray {

/// What numbers devices have on a machine: its own theirs, others count as its first ones in their order.
std::vector<int> numbers_on(const Machine& m, const std::vector<Device>& devices);

/// Seconds of a transfer, all its runs, between devices of these numbers (by position): collectives over groups of several levels of
/// links go level by level, the slowest links carrying the least; whatever else moves takes the slowest links between its devices.
double transfer_seconds(const Transfer& t, const std::vector<int>& numbers, const Machine& m);

/// The same on devices of a described machine; 0 on others, whose rates nobody has told.
double described_seconds(const Transfer& t, const DeviceOrder& order);

}  // namespace shardarray
