// The type-erased core of custom_jvp, custom_vjp and checkpoint.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shardarray/detail/maps.h"

namespace shardarray::core {

/// A leaf position of a tree, perhaps without an array.
struct PlacedLeaf {
  Array array;
  std::string path;
};
using PlacedLeaves = std::vector<PlacedLeaf>;

/// What the forward function of custom_vjp returned: all leaves of the result, the present residuals, and the backward function, which
/// gives the cotangents of all present arguments for those of floating results.
struct CustomForward {
  PlacedLeaves result;
  Arrays residuals;
  std::function<PlacedLeaves(std::span<const Array> residuals, std::span<const Array> cotangents)> backward;
};
/// A user's derivative, on the present arrays of the arguments; only floating arguments have tangents. Called while the function is
/// recorded, and perhaps later.
struct CustomFunctions {
  const char* function = nullptr;  ///< custom_jvp, custom_vjp
  std::shared_ptr<const void> id;  ///< identifies the function that has this derivative
  /// custom_jvp: the tangents of all leaves of the result.
  std::function<PlacedLeaves(std::span<const Array> arguments, std::span<const Array> tangents)> push = {};
  /// custom_vjp
  std::function<CustomForward(std::span<const Array> arguments)> forward = {};
};

/// Whether what this thread computes now may be differentiated later.
SHARDARRAY_API bool may_be_derived();
/// All leaves of the results of `f` for `arguments` (present ones); differentiated as `custom` says.
SHARDARRAY_API Arrays custom_call(MapBody f, std::span<const Array> arguments, CustomFunctions custom,
                                  Where w);
/// The results of `f`, without residuals: the backward pass recomputes f from `arguments`.
SHARDARRAY_API Arrays checkpoint(MapBody f, std::span<const Array> arguments, Where w);

}  // namespace shardarray::core
