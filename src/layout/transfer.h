// What it takes to bring a value from one layout into another: the pattern's name, its axes and its bytes.
// Pure maths: no data, no buffers.
#pragma once
#include <cstdint>
#include <vector>

#include "layout/layout.h"

namespace shardarray {

// g++ 12 takes scoped enumerators for shadows of globals of the same name.
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
  std::int64_t bytes = 0;  ///< what the busiest device receives if memories were separate; fractions round up
};
/// One step from `from` to `to` (same device order). Summands are made for nothing, a slice: see makes_summands().
/// Bytes: all_reduce 2(g-1)/g*L and reduce_scatter (g-1)/g*L, with L the
/// bytes of the largest local unreduced tile and g the product of the reduced sub-axes; everything else
/// max over devices of |target tile \ source tile|. A value that only gets cut further is a `slice` and costs nothing.
/// From unreduced: to the same dims is all_reduce, to dims that additionally hold all the reduced sub-axes (at the minor
/// end of dimensions) is reduce_scatter; anything else from unreduced is not one step: kind exchange, with bytes of
/// all_reduce plus those of the rest.
TransferCost transfer_cost(const Layout& from, const Layout& to, const Shape& shape, std::int64_t itemsize);
/// Of sums over g devices that hold `bytes` of summands each: what each device receives.
std::int64_t all_reduce_bytes(std::int64_t g, std::int64_t bytes);
std::int64_t reduce_scatter_bytes(std::int64_t g, std::int64_t bytes);

/// What each position receives in that step, which is of this kind; empty: all the same.
std::vector<std::int64_t> received_of_each(const Layout& from, const Layout& to, const Shape& shape,
                                           std::int64_t itemsize, TransferKind kind);
/// A bound of what the busiest device receives on any way from `from`, of which there is no other copy, to `to`; 0: not known, as where
/// summands stay or are made, or sums are of tiles of several sizes. What it lacks, where nothing is reduced. Of an element with g
/// summands that c devices want, g - 1 have to go elsewhere before one device has the sum, and c - 1 others have to get that, one more
/// where nobody who wants it has a summand: so much on average of all devices. An all_reduce takes just that (P. Patarasuk and X. Yuan,
/// Bandwidth optimal all-reduce algorithms for clusters of workstations, 2009), but where several devices have one summand: these can
/// share the work.
std::int64_t least_received(const Layout& from, const Layout& to, const Shape& shape, std::int64_t itemsize);

/// The unreduced sub-axes of `from` that `to` no longer has.
AxisList reduced_axes(const Layout& from, const Layout& to);
/// The unreduced sub-axes of `to` that `from` has not.
AxisList made_axes(const Layout& from, const Layout& to);
/// Whether the step to such a `to` takes nothing from other devices: those that hold the same along the made sub-axes stay one
/// summand, the others are zeros. Dimensions are cut as before, or evenly and no longer along these sub-axes.
bool makes_summands(const Layout& from, const Layout& to, const Shape& shape);
/// `to` with the partial sums that `from` has as well: where it is before summands are made.
const Layout* before_summands(const Layout& from, const Layout& to);
/// `layout` cut as `dims`, with the reduced sub-axes out of its partial sums.
const Layout* without_partial_sums(const Layout& layout, const AxisList& reduced, std::vector<AxisList> dims);

}  // namespace shardarray
