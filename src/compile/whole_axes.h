// Results that nobody placed, sharded along whole mesh axes.
#pragma once
#include "compile/compile.h"
#include "compile/spelled_layouts.h"

namespace shardarray {

/// The layout in which a value of this shape is left that would be in `l`: `l`; but if that is sharded along parts of mesh axes, and each
/// device already has the data, sharded like an argument, along the whole axis, which can be written as a spec.
const Layout* on_whole_axes(const Layout* l, const Shape& shape, const CompileInput& in,
                            SpelledLayouts& spelled);

}  // namespace shardarray
