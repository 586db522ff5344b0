// A spec names mesh axes; numbers are no axes.
// expect: P: an entry is a mesh axis ("x"), none, or axes("x", "y")
// clang expect: P: an entry is a mesh axis (
#include "shardarray/sharding.h"

const shardarray::PartitionSpec spec = shardarray::P(3);
