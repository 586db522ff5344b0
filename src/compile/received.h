// What the devices receive of a transfer. Transfer::received has their bytes by position of the order of the value that comes; it is
// empty where all receive as much as the busiest one.
#pragma once
#include <cstdint>
#include <vector>

#include "compile/passes.h"

namespace shardarray {

void set_received(Transfer& t, std::vector<std::int64_t> each);
/// What the positions receive of t goes on top of what they receive of `to`.
void add_received(Transfer& to, const Transfer& t);
/// Of p's own transfers, by their busiest devices.
std::int64_t received_bytes(const Partition& p);
/// visit(transfer, how often) for those of p and of the programs that it calls, in all their runs.
template <class F> void each_transfer(const Partition& p, const F& visit) {
  for (const Transfer& t : p.transfers) visit(t, 1.0);
  for (const auto& [node, called] : p.iterations)
    for (const Transfer& t : called.compiled->program->transfers)
      visit(t, static_cast<double>(called.iteration.length));
  for (const auto& [node, called] : p.branches)
    for (const auto& program : called.programs)
      for (const Transfer& t : program->program->transfers) visit(t, static_cast<double>(called.runs));
}
/// The transfers of p, each with what devices receive in this order, whatever order its value has.
std::vector<Transfer> transfers_in_order(const Partition& p, const DeviceOrder& order);

}  // namespace shardarray
