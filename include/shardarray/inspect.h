// The pictures of visualize.h, for arrays.
#pragma once
#include "shardarray/debug.h"
#include "shardarray/visualize.h"

namespace shardarray {

/// Prints which devices hold which shards of `x` to standard output (evaluates; inside jit: once per compilation). Arrays of any rank are
/// drawn, see visualize.h. Under a map, the picture shows the batched array.
///
///     sa::visualize_array_sharding(x);
///
/// Throws as inspect_array_sharding(), also in scan steps and cond branches (TraceError: these run only on the devices), and Error for
/// options out of range.
SHARDARRAY_API void visualize_array_sharding(const Array& x, const VisualizeOptions& options = {},
                                             Where w = Where::here());

/// Prints how the placements of `from` and `to` differ, and the bytes of `to`'s dtype that each device would have to receive, as
/// render_diff() shows it (evaluates).
///
///     sa::visualize_diff(x, sa::filter_shard(x, other));
///
/// Throws ShapeError unless the shapes are equal, TraceError inside a trace, Error for an absent array.
SHARDARRAY_API void visualize_diff(const Array& from, const Array& to, Where w = Where::here());

/// The same for where `from` is and where `to` would place it (evaluates `from`; moves nothing).
///
///     sa::visualize_diff(x, sa::NamedSharding(mesh, sa::P("x")));
///
/// Throws ShardingError for a sharding that does not fit the rank, TraceError inside a trace, Error for an absent array.
SHARDARRAY_API void visualize_diff(const Array& from, const Sharding& to, Where w = Where::here());

}  // namespace shardarray
