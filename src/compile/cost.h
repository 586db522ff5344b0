// The cost model: seconds are not predicted yet, everything is in bytes received by the busiest device. One interface, so
// that a measured model can take its place.
#pragma once
#include "layout/layout.h"
#include "layout/transfer.h"

namespace shardarray {

struct CostModel {
  /// A path of transfers, in byte equivalents; every step costs a little so that fewer steps win ties.
  double transfer(const Layout* from, const Layout* to, const Shape& shape, std::int64_t itemsize) const;
  /// One transfer of so many bytes.
  double moved(std::int64_t bytes) const;
  /// Arithmetic on the busiest device, in byte equivalents: 500 operations weigh as much as one f32 received.
  double compute(double flops) const { return flops * (4.0 / 500); }
};

}  // namespace shardarray
