// Optimizers, as in optax: values with init(parameters) and update(gradients, state, parameters), which returns (updates, next
// state). Add the updates with apply_updates(). Dtypes, and what a transformation of yours needs: transform.h.
//
// Write optim::trace and optim::clip: without the namespace they are ambiguous beside those of arrays.
//
// init and update throw nothing of their own but TreeError and, for shapes that differ, ShapeError; dtypes are promoted as operators
// do.
#pragma once
#include "shardarray/optim/transform.h"  // first: errors of the compiler tell how it was included

#include "shardarray/optim/loss_scale.h"
#include "shardarray/optim/moments.h"
#include "shardarray/optim/optimizers.h"
#include "shardarray/optim/scaling.h"
#include "shardarray/optim/schedules.h"
#include "shardarray/optim/wrappers.h"
