// Merging of adjacent dimensions of a loop nest or copy if all strides traverse them as one sequence.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace shardarray {

/// Whether stepping along the outer dimension continues the inner one, of `extent` elements.
inline bool goes_on(std::int64_t outer, std::int64_t inner, std::int64_t extent) {
  return outer == inner * extent;
}
inline bool goes_on(const std::vector<std::int64_t>& outer, const std::vector<std::int64_t>& inner,
                    std::int64_t extent) {
  return std::equal(outer.begin(), outer.end(), inner.begin(), inner.end(),
                    [&](std::int64_t o, std::int64_t i) { return goes_on(o, i, extent); });
}

/// Appends a dimension, outermost first, merging it into the last axis if possible. Extent 1 is dropped. `strides`: the members of an axis
/// that have to be contiguous.
template <auto... strides, class Axis> void append_axis(std::vector<Axis>& axes, Axis axis) {
  if (axis.extent == 1) return;
  if (!axes.empty() && (goes_on(axes.back().*strides, axis.*strides, axis.extent) && ...)) {
    axis.extent *= axes.back().extent;
    axes.pop_back();
  }
  axes.push_back(std::move(axis));
}

}  // namespace shardarray
