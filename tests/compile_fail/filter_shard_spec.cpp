// A PartitionSpec alone names no devices.
// expect: give a Device, a sharding (of a mesh: NamedSharding(mesh, P(...)))
#include "shardarray/filter_shard.h"

namespace sa = shardarray;

auto misuse(const sa::Array& x) { return sa::filter_shard(x, sa::P("data")); }
