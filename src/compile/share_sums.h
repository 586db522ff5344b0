// Large all-reduces over processes as reduce-scatter and all-gather: of L bytes each of g devices receives 2 (g-1)/g L, not (g-1) L.
#pragma once
#include "layout/layout.h"
#include "runtime/program.h"

namespace shardarray {

/// Where whole tiles in several processes are sums of the same tiles, `sums` leaves each receiver with the sum of one part; the result
/// sends the parts to the others. Every element is combined as before, in the same order. No items: no such sum is large enough, and `sums`
/// is unchanged.
Exchange share_sums(Exchange& sums, const DeviceOrder& order);

}  // namespace shardarray
