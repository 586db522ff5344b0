// Sliding windows: the op conv, and shared code: numbers per spatial dimension, padding.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/sizes.h"
#include "ops/api.h"
#include "shardarray/convolution.h"

namespace shardarray {

extern const Op op_conv;

namespace primitive {

/// Slides windows of the shape of `kernel` over x: letters as for dot, capitals from A on are spatial, with strides and dilations.
Array conv(const std::string& letters, const Array& x, const Array& kernel, const Shape& stride,
           const Shape& dilation);

}  // namespace primitive

namespace windows {

using Widths = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// One number for each of `rank` spatial dimensions; empty: 1. Throws ShapeError for a wrong number of them or values below 1.
Shape per_dimension(const char* function, const char* what, const Shape& given, std::size_t rank);
/// The number of elements that a window spans.
inline std::int64_t reach(std::int64_t window, std::int64_t dilation) {
  return window == 0 ? 0 : add_sizes(mul_sizes(window - 1, dilation), 1);
}
/// The padding before and after, for windows of that reach. Throws Error for an unknown rule, ShapeError for a wrong number of widths.
Widths widths_of(const char* function, const Padding& padding, const Shape& sizes, const Shape& reaches,
                 const Shape& strides);
/// The rule in capitals: "VALID", "SAME", "SAME_LOWER"; empty if widths are given. Throws Error for others.
std::string rule_of(const char* function, const Padding& padding);
/// x dilated by `dilation` with zeros between elements, and padded with `bits` along `dims`. Throws ShapeError if more would be removed
/// than there is.
Array surrounded(const char* function, const Array& x, const Shape& dims, const Widths& widths,
                 const Shape& dilation, std::uint64_t bits = 0);

}  // namespace windows
}  // namespace shardarray
