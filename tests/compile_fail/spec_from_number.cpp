// A spec names mesh axes; numbers are no axes.
// expect: no matching
#include "shardarray/sharding.h"

const shardarray::PartitionSpec spec = shardarray::P(3);
