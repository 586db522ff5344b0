// Conversions between shardings of values (sub-axes per dimension) and of nodes (sub-axes per factor).
#pragma once
#include <optional>

#include "compile/passes.h"

namespace shardarray {

/// The part of a value's sharding that each factor can hold. In a compound dimension a minor factor gets sub-axes only if the major ones
/// are fully sharded, and sizes must divide.
Assignment project(const SubAxisDims& dims, const std::vector<DimFactors>& factors, const Rule& rule,
                   const SubAxes& sub_axes);

/// Sets `dims` to the sharding of a value of `shape` whose dimensions have these factors; false if a compound dimension would need strided
/// or uneven tiles.
bool place(const Assignment& a, const std::vector<DimFactors>& factors, const Rule& rule, const Shape& shape,
           const SubAxes& sub_axes, SubAxisDims& dims);

/// The first sharded factor of this role.
std::optional<std::size_t> cut_factor(const Rule& rule, const Assignment& a, Role role);

/// Whether the node's result can be made anywhere for free: constants, iota, broadcasts of scalars.
bool is_free(const FlatGraph& g, int node);

/// The layout that a constraint node requests, on `order`; leading dimensions added by vmap are not sharded.
const Layout* constraint_layout(const FlatNode& n, const DeviceOrder* order);

}  // namespace shardarray
