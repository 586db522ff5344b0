// Convolutions: sums of products of a kernel and a sliding window. Names, arguments and values of jax.lax.
#pragma once
#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "shardarray/ops.h"

namespace shardarray {

/// How an array is padded before windows slide over it: not at all ("VALID"); so that the number of windows is the size divided by the
/// stride, rounded up, with an odd element at the end ("SAME") or the start ("SAME_LOWER"); or by numbers of elements: `1` on all sides,
/// `{1, 2}` on both sides of each dimension, `{{1, 0}, {2, 1}}` before and after; negative ones remove elements.
class SHARDARRAY_API Padding {
 public:
  Padding() = default;
  Padding(const char* rule) : rule_(rule) {}
  Padding(std::string rule) : rule_(std::move(rule)) {}
  template <std::integral I> Padding(I everywhere) : widths_{{to_int64(everywhere), to_int64(everywhere)}} {}
  Padding(std::initializer_list<std::int64_t> both_sides) {
    for (const std::int64_t n : both_sides) widths_.emplace_back(n, n);
  }
  Padding(std::initializer_list<std::pair<std::int64_t, std::int64_t>> sides) : widths_(sides) {}
  Padding(std::vector<std::pair<std::int64_t, std::int64_t>> sides) : widths_(std::move(sides)) {}

  /// Empty if there are widths.
  [[nodiscard]] const std::string& rule() const { return rule_; }
  /// Before and after, for each spatial dimension, or one pair for all.
  [[nodiscard]] const std::vector<std::pair<std::int64_t, std::int64_t>>& widths() const { return widths_; }

  [[nodiscard]] friend auto tree_fields(Padding& p) { return std::tie(p.rule_, p.widths_); }

 private:
  std::string rule_;
  std::vector<std::pair<std::int64_t, std::int64_t>> widths_;
};

/// The meaning of each dimension: N is the batch, C channels; in the kernel, O and I are output and input channels; other letters are
/// spatial dimensions, in the order of the kernel. Empty: "NCHW", "OIHW", "NCHW".
struct ConvDimensionNumbers {
  std::string lhs = "", rhs = "", out = "";
};

/// Options of conv_general_dilated. Lists have one number per spatial dimension, or one for all; empty: 1.
struct ConvOptions {
  Shape window_strides = {};  ///< from window to window
  Padding padding = {};       ///< default: none
  Shape lhs_dilation = {};    ///< distance of the array's elements, with zeros in between
  Shape rhs_dilation = {};    ///< distance of elements within a window
  ConvDimensionNumbers dimension_numbers = {};
  /// The number of groups into which input and output channels are divided, each with its own kernels: rhs has C / groups input channels.
  std::int64_t feature_group_count = 1;
  std::int64_t batch_group_count = 1;  ///< the same for the batch dimension
};
/// lhs [n, c, spatial..] by rhs [o, c / groups, window..] -> [n, o, windows..]: out[n, o, i..] = sum over c and k.. of lhs[n, c, i
/// stride + k dilation..] rhs[o, c, k..]; zeros around the array and between its elements are multiplied too. Any number of spatial
/// dimensions. Operands are promoted; 16-bit floats are accumulated in float32, integers wrap, complex numbers take four real products.
/// If no window fits, the result is empty. Images, channels, groups and spatial dimensions may be sharded: neighbours exchange only the
/// edges that windows reach into. Throws ShapeError for ranks, sizes, groups, strides and widths that do not fit, DTypeError for bools,
/// Error for invalid dimension numbers and padding rules. Source: jax.lax.conv_general_dilated.
inline constexpr struct SHARDARRAY_API conv_general_dilated_fn {
  [[nodiscard]] Array operator()(const Array& lhs, const Array& rhs, const ConvOptions& o = {},
                                 Where w = Where::here()) const;
} conv_general_dilated{};
/// The same with only strides and padding. Source: jax.lax.conv.
inline constexpr struct SHARDARRAY_API conv_fn {
  [[nodiscard]] Array operator()(const Array& lhs, const Array& rhs, const Shape& window_strides = {},
                                 const Padding& padding = {}, Where w = Where::here()) const;
} conv{};

/// Options of conv_transpose.
struct ConvTransposeOptions {
  Shape strides = {};                           ///< of the convolution that is transposed; empty: 1
  Padding padding = {};                         ///< rules: of that convolution; widths: of the dilated array
  Shape rhs_dilation = {};                      ///< distance of elements within a window; empty: 1
  ConvDimensionNumbers dimension_numbers = {};  ///< empty: "NHWC", "HWIO", "NHWC", as in JAX
  bool transpose_kernel =
      false;  ///< flips the kernel along space and swaps I and O: the gradient of a convolution
  bool use_consistent_padding = false;  ///< widths, too, are those of that convolution
};
/// A fractionally strided convolution: array elements are `strides` apart. Maps the shape of a convolution's result to that of its input.
/// Throws as conv_general_dilated. Source: jax.lax.conv_transpose.
inline constexpr struct SHARDARRAY_API conv_transpose_fn {
  [[nodiscard]] Array operator()(const Array& lhs, const Array& rhs, const ConvTransposeOptions& o = {},
                                 Where w = Where::here()) const;
} conv_transpose{};

}  // namespace shardarray
