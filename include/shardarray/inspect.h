// The pictures of visualize.h for arrays.
#pragma once
#include "shardarray/debug.h"
#include "shardarray/visualize.h"

namespace shardarray {

/// Prints where the pieces of `x` lie on standard output (evaluates; inside jit: once a compilation). Any array has a picture:
/// visualize.h says how it is drawn. Under a map it is that of all rows.
///
///     sa::visualize_array_sharding(x);
///
/// Throws as inspect_array_sharding(), in steps of scan and branches of cond too (TraceError: these run on the devices only), and Error
/// for options out of range.
SHARDARRAY_API void visualize_array_sharding(const Array& x, const VisualizeOptions& options = {},
                                             Where w = Where::here());

/// Prints what differs between where `from` and `to` lie, and the bytes that each device would have to receive, of `to`'s dtype, as
/// render_diff() shows it (evaluates).
///
///     sa::visualize_diff(x, sa::filter_shard(x, other));
///
/// Throws ShapeError unless they have one shape, TraceError inside a trace, Error for an absent array.
SHARDARRAY_API void visualize_diff(const Array& from, const Array& to, Where w = Where::here());

/// The same of where `from` lies and where `to` would have it (evaluates `from`; moves nothing).
///
///     sa::visualize_diff(x, sa::NamedSharding(mesh, sa::P("x")));
///
/// Throws ShardingError for a sharding that does not fit the rank, TraceError inside a trace, Error for an absent array.
SHARDARRAY_API void visualize_diff(const Array& from, const Sharding& to, Where w = Where::here());

}  // namespace shardarray
