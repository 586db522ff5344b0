// Neighbouring dimensions of a nest of loops, or of a copy, that all strides walk through in one sequence are one axis.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace shardarray {

/// Whether a step along the outer dimension is as far as all steps along the inner one, of `extent` points.
inline bool goes_on(std::int64_t outer, std::int64_t inner, std::int64_t extent) {
  return outer == inner * extent;
}
inline bool goes_on(const std::vector<std::int64_t>& outer, const std::vector<std::int64_t>& inner,
                    std::int64_t extent) {
  return std::equal(outer.begin(), outer.end(), inner.begin(), inner.end(),
                    [&](std::int64_t o, std::int64_t i) { return goes_on(o, i, extent); });
}

/// Appends a dimension, outermost first, or makes it part of the last axis. One point is no axis. `strides`: the members of an
/// axis that have to go on.
template <auto... strides, class Axis> void append_axis(std::vector<Axis>& axes, Axis axis) {
  if (axis.extent == 1) return;
  if (!axes.empty() && (goes_on(axes.back().*strides, axis.*strides, axis.extent) && ...)) {
    axis.extent *= axes.back().extent;
    axes.pop_back();
  }
  axes.push_back(std::move(axis));
}

}  // namespace shardarray
