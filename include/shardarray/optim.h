// Optimizers, as in optax: values with init(parameters) and update(gradients, state, parameters), which returns (updates, next
// state). Add the updates with apply_updates(). Absent arrays stay absent everywhere. Updates and states have the dtypes of the
// gradients (16-bit ones too), and are computed in them; numbers of the options are rounded to them once.
//
// init and update throw nothing of their own but TreeError and, for shapes that differ, ShapeError; dtypes are promoted as operators
// do.
#pragma once
#include "shardarray/optim/moments.h"
#include "shardarray/optim/optimizers.h"
#include "shardarray/optim/scaling.h"
#include "shardarray/optim/schedules.h"
#include "shardarray/optim/transform.h"
#include "shardarray/optim/wrappers.h"
