// How long a program takes on a described machine, by its rates.
#pragma once
#include "runtime/machine.h"
#include "runtime/program.h"

namespace shardarray {

/// Seconds of a transfer, all its runs: collectives over groups of several levels of links go level by level, the slowest links carrying the
/// least; whatever else moves takes the slowest links between its devices.
double seconds_of(const Transfer& t, const DeviceOrder& order, const Machine& m);

/// Seconds of the busiest device's steps one after the other: products and convolutions take what their arithmetic or their memory
/// takes, whichever is longer, other steps their memory; of branches the longest; of what repeats as long as it is asked for one run.
double compute_seconds(const Program& program, const Machine& m);

}  // namespace shardarray
