// The reshard planner: by which transfers a value comes from one layout into another.
#pragma once
#include <cstdint>
#include <vector>

#include "compile/cost.h"
#include "graph/node.h"
#include "layout/layout.h"
#include "layout/transfer.h"
#include "runtime/program.h"

namespace shardarray {

/// Layouts, without the source, ending in the target.
struct ReshardPath {
  std::vector<const Layout*> layouts;
  MoveCost cost;  ///< by the model
};
/// The cheapest by the model of: the direct step; for an unreduced source every reduce_scatter of the reduced axes into dims of the target or
/// of the source followed by the direct step, and all_reduce followed by the (free or direct) rest; these from the source, and where
/// replicas have memory of their own from where it is cut as the target is, for nothing, along axes on which devices have the same of it.
/// Scatters that would leave tiles empty are left out. Where the target has summands that the source has not, they are made last. Empty
/// when `from` is `to`.
ReshardPath reshard(const Layout* from, const Layout* to, const Shape& shape, std::int64_t itemsize,
                    const CostModel& model);
/// The transfer that moves a value of type t at once: its kind, axes and bytes.
Transfer describe_transfer(const Type& t, const Layout* from, const Layout* to);

}  // namespace shardarray
