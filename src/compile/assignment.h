// Between placements of values (sub_axes per dimension) and of nodes (sub_axes per factor).
#pragma once
#include <optional>

#include "compile/passes.h"

namespace shardarray {

/// The part of a value's placement that each factor can hold. Within a compound dimension a minor factor only gets sub_axes
/// once the major ones are fully cut, and cuts must divide.
Assignment project(const SubAxisDims& dims, const std::vector<DimFactors>& factors, const Rule& rule,
                   const SubAxes& sub_axes);

/// The placement of a value of `shape` whose dimensions have these factors, in `dims`; false when a compound dimension would need
/// strided or uneven tiles.
bool place(const Assignment& a, const std::vector<DimFactors>& factors, const Rule& rule, const Shape& shape,
           const SubAxes& sub_axes, SubAxisDims& dims);

/// The first factor of this role that is cut.
std::optional<std::size_t> cut_factor(const Rule& rule, const Assignment& a, Role role);

/// A node whose result can be made anywhere at no cost: constants, iota, broadcasts of scalars.
bool is_free(const FlatGraph& g, int node);

/// The layout that a constraint node asks for, on `order`; leading dimensions that vmap added are left open (whole).
const Layout* constraint_layout(const FlatNode& n, const DeviceOrder* order);

}  // namespace shardarray
