// Layers as plain structs, as in Equinox: trees of arrays, called on one example; use vmap for batches. Names, field order and initial
// bits are Equinox's.
//
// Layers throw Error for an absent array, DTypeError for a complex dtype, and what their docs say.
#pragma once
#include "shardarray/nn/attention.h"
#include "shardarray/nn/initializers.h"
#include "shardarray/nn/layers.h"
#include "shardarray/nn/linear.h"
#include "shardarray/nn/norms.h"
#include "shardarray/nn/recurrent.h"
#include "shardarray/nn/sequential.h"
#include "shardarray/tree_filter.h"
