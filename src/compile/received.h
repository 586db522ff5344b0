// What devices receive of a transfer. Transfer::received has bytes by position in the order of the received value; it is empty if all
// receive as much as the busiest one.
#pragma once
#include <cstdint>
#include <vector>

#include "compile/passes.h"

namespace shardarray {

void set_received(Transfer& t, std::vector<std::int64_t> each);
/// Adds what positions receive of t to what they receive of `to`.
void add_received(Transfer& to, const Transfer& t);
/// Of p's own transfers: the sum of what the busiest device of each receives.
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
/// The transfers of p, with what devices receive by position in this order, whatever order their values have.
std::vector<Transfer> transfers_in_order(const Partition& p, const DeviceOrder& order);

}  // namespace shardarray
