// Everything. `namespace sa = shardarray;`
#pragma once
#include "shardarray/array.h"
#include "shardarray/collectives.h"
#include "shardarray/device.h"
#include "shardarray/dtype.h"
#include "shardarray/error.h"
#include "shardarray/explain.h"
#include "shardarray/filter_shard.h"
#include "shardarray/grad.h"
#include "shardarray/inspect.h"
#include "shardarray/jit.h"
#include "shardarray/losses.h"
#include "shardarray/nn.h"
#include "shardarray/ops.h"
#include "shardarray/optim.h"
#include "shardarray/placement.h"
#include "shardarray/random.h"
#include "shardarray/shape.h"
#include "shardarray/sharding.h"
#include "shardarray/tree.h"
#include "shardarray/version.h"
#include "shardarray/visualize.h"
#include "shardarray/vmap.h"

#if __has_include("shardarray/data.h")
#include "shardarray/data.h"
#endif
