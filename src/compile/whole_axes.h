// Results that nobody placed, in the words of the mesh.
#pragma once
#include "compile/compile.h"
#include "compile/spelled_layouts.h"

namespace shardarray {

/// Where a value of this shape that would lie as `l` is left: there, or, where that is cut along parts of mesh axes and each device has
/// already what it would have, cut as an argument is cut: along all of the axis, which has a spelling as a spec.
const Layout* on_whole_axes(const Layout* l, const Shape& shape, const CompileInput& in,
                            SpelledLayouts& spelled);

}  // namespace shardarray
