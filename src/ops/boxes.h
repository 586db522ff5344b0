// What ops that are made of boxes share.
#pragma once
#include "ops/rules.h"

namespace shardarray::rules {

/// A box that is read where it stands.
inline BoxSource copied(const Box& out) { return {0, out, out.lo, Shape::filled(out.lo.size(), 1)}; }

/// The op with attributes that know of the new leading dimension.
inline Batched with_leading(const BatchArgs& b, Attrs a) {
  return mapped({record(*b.node.op, b.in, std::move(a))});
}

}  // namespace shardarray::rules
