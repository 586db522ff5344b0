// Optimizers, as in optax: values with init(parameters) and update(gradients, state, parameters), which returns (updates, next state).
// Add the updates with apply_updates(). Dtypes, and how to write your own transformation: transform.h.
//
// Write optim::trace and optim::clip: without the namespace they are ambiguous with the functions of arrays.
//
// init and update only throw TreeError and, if shapes differ, ShapeError; dtypes are promoted as by operators.
#pragma once
#include "shardarray/optim/transform.h"  // first: compiler errors show how it was included

#include "shardarray/optim/loss_scale.h"
#include "shardarray/optim/moments.h"
#include "shardarray/optim/optimizers.h"
#include "shardarray/optim/scaling.h"
#include "shardarray/optim/schedules.h"
#include "shardarray/optim/wrappers.h"
