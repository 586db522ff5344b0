// The transfer that converts a value from one layout to another: kind, axes and bytes. Pure maths: no data, no buffers.
#pragma once
#include <cstdint>
#include <vector>

#include "layout/layout.h"

namespace shardarray {

// g++ 12 warns that scoped enumerators shadow globals of the same name.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class TransferKind : std::uint8_t {
  none,
  slice,
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  permute,
  exchange
};
#pragma GCC diagnostic pop
/// "all_reduce", "permute", ...
const char* name(TransferKind k);

struct TransferCost {
  TransferKind kind = TransferKind::none;
  AxisList axes;           ///< the sub-axes over which data moves
  std::int64_t bytes = 0;  ///< received by the busiest device if all memories are separate; rounded up
};
/// One step from `from` to `to` (same device order). Creating summands is a free slice: see makes_summands().
/// Bytes: all_reduce 2(g-1)/g*L and reduce_scatter (g-1)/g*L, where L is the bytes of the largest local unreduced tile and g the product of
/// the reduced sub-axes; for everything else the maximum over devices of |target tile \ source tile|. Sharding further is a `slice` and
/// free. From a partial sum: to the same dims it is an all_reduce; to dims that add exactly the reduced sub-axes (at the minor end of
/// dimensions) a reduce_scatter; anything else is more than one step: kind exchange, with the bytes of the all_reduce plus the rest.
TransferCost transfer_cost(const Layout& from, const Layout& to, const Shape& shape, std::int64_t itemsize);
/// Bytes that each of g devices receives in a reduction of `bytes` of summands per device.
std::int64_t all_reduce_bytes(std::int64_t g, std::int64_t bytes);
std::int64_t reduce_scatter_bytes(std::int64_t g, std::int64_t bytes);

/// What each position receives in that step of this kind; empty: all the same.
std::vector<std::int64_t> received_of_each(const Layout& from, const Layout& to, const Shape& shape,
                                           std::int64_t itemsize, TransferKind kind);
/// A lower bound of what the busiest device receives on any way from `from` (the only copy) to `to`; 0: unknown, for example if summands
/// stay or are created, or tiles of a partial sum differ in size. Without reduction it is what a device lacks. For an element with g
/// summands that c devices want, g - 1 summands have to move before one device has the sum, and then c - 1 other devices need it (one more
/// if none that wants it has a summand); this is averaged over all devices. An all_reduce attains the bound (P. Patarasuk and X. Yuan,
/// Bandwidth optimal all-reduce algorithms for clusters of workstations, 2009), unless several devices hold the same summand and can share
/// the work.
std::int64_t least_received(const Layout& from, const Layout& to, const Shape& shape, std::int64_t itemsize);

/// The unreduced sub-axes of `from` that are not unreduced in `to`.
AxisList reduced_axes(const Layout& from, const Layout& to);
/// The unreduced sub-axes of `to` that are not unreduced in `from`.
AxisList made_axes(const Layout& from, const Layout& to);
/// Whether the step to such a `to` needs nothing from other devices: of the devices that hold the same along the made sub-axes, one keeps
/// the value as its summand and the others take zeros. Dimensions are sharded as before, or evenly and no longer along these sub-axes.
bool makes_summands(const Layout& from, const Layout& to, const Shape& shape);
/// `to` with only those partial sums that `from` also has: the layout before summands are created.
const Layout* before_summands(const Layout& from, const Layout& to);
/// `layout` with dimensions `dims` and without the reduced sub-axes in its partial sums.
const Layout* without_partial_sums(const Layout& layout, const AxisList& reduced, std::vector<AxisList> dims);

}  // namespace shardarray
