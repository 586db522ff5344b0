// The reshard planner: which transfers take a value from one layout to another.
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
/// The cheapest by the model of: the direct step; from partial sums, every reduce_scatter of the reduced axes into dimensions of the target
/// or of the source, then the direct step; all_reduce, then the (free or direct) rest. These start from the source and, if replicas have
/// separate memories, from the source sharded for free like the target along axes on which devices hold the same of it. Scatters that would
/// leave tiles empty are left out. Summands that the target has and the source lacks are made last. Empty if `from` is `to`.
ReshardPath reshard(const Layout* from, const Layout* to, const Shape& shape, std::int64_t itemsize,
                    const CostModel& model);
/// The transfer that moves a value of type t in one step: its kind, axes and bytes.
Transfer describe_transfer(const Type& t, const Layout* from, const Layout* to);

}  // namespace shardarray
