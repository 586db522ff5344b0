// What layers with spatial dimensions ask of the example that they take.
#pragma once
#include "ops/api.h"

namespace shardarray::nn {

/// Throws ShapeError unless x is one example: channels and `dims` spatial dimensions.
void need_example(const char* layer, const Array& x, std::size_t dims);
/// Throws ShapeError where an example that is not empty has no window, of which functions give an empty y.
void need_windows(const char* layer, const Array& x, const Array& y, const Shape& window);

}  // namespace shardarray::nn
