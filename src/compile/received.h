// What the devices receive of a transfer. Transfer::received has their bytes by position of the order of the value that comes; it is
// empty where all receive as much as the busiest one.
#pragma once
#include <vector>

#include "compile/passes.h"

namespace shardarray {

void set_received(Transfer& t, std::vector<std::int64_t> each);
/// What the positions receive of t goes on top of what they receive of `to`.
void add_received(Transfer& to, const Transfer& t);
/// The transfers of p, each with what devices receive in this order, whatever order its value has.
std::vector<Transfer> transfers_in_order(const Partition& p, const DeviceOrder& order);

}  // namespace shardarray
