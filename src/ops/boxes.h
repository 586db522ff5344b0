// Shared by ops that are assembled from boxes.
#pragma once
#include "ops/rules.h"

namespace shardarray::rules {

/// A box that is read at its own position.
inline BoxSource copied(const Box& out) { return {0, out, out.lo, Shape::filled(out.lo.size(), 1)}; }

/// Batches an op whose attributes already account for the new leading dimension.
inline Batched with_leading(const BatchArgs& b, Attrs a) {
  return mapped({record(*b.node.op, b.in, std::move(a))});
}

}  // namespace shardarray::rules
