// Checks of the example that a layer with spatial dimensions takes.
#pragma once
#include "ops/api.h"

namespace shardarray::nn {

/// Throws ShapeError unless x is one example: channels and `dims` spatial dimensions.
void need_example(const char* layer, const Array& x, std::size_t dims);
/// Throws ShapeError if a non-empty example has no window, for which functions return an empty y.
void need_windows(const char* layer, const Array& x, const Array& y, const Shape& window);

}  // namespace shardarray::nn
