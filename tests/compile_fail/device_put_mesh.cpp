// A mesh alone does not say which axis cuts what.
// expect: give a Device, a sharding (of a mesh: NamedSharding(mesh, P(...)))
#include "shardarray/filter_shard.h"

namespace sa = shardarray;

auto misuse(const sa::Array& x) { return sa::device_put(x, sa::make_mesh({{"x", 2}})); }
