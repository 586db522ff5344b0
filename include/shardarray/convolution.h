// Convolutions: windows slide over an array, sums of products with a kernel. Names, arguments and values of jax.lax.
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

/// What stands around an array before windows slide over it: nothing ("VALID"); as much as makes the number of windows the size divided
/// by the stride, rounded up, with the odd element behind ("SAME") or in front ("SAME_LOWER"); or numbers of elements: `1` on all
/// sides, `{1, 2}` on both sides of each dimension, `{{1, 0}, {2, 1}}` in front and behind; negative ones take elements away.
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

  /// Empty where there are widths.
  [[nodiscard]] const std::string& rule() const { return rule_; }
  /// In front and behind, for each spatial dimension, or one pair for all.
  [[nodiscard]] const std::vector<std::pair<std::int64_t, std::int64_t>>& widths() const { return widths_; }

  [[nodiscard]] friend auto tree_fields(Padding& p) { return std::tie(p.rule_, p.widths_); }

 private:
  std::string rule_;
  std::vector<std::pair<std::int64_t, std::int64_t>> widths_;
};

/// What each dimension is: N the batch, C channels; of the kernel O and I, the channels of the result and of the array; every other letter
/// a spatial dimension, in the order of the kernel. Empty: "NCHW", "OIHW", "NCHW".
struct ConvDimensionNumbers {
  std::string lhs = "", rhs = "", out = "";
};

/// Options of conv_general_dilated. Lists have a number for each spatial dimension, or one for all; empty: 1.
struct ConvOptions {
  Shape window_strides = {};  ///< from window to window
  Padding padding = {};       ///< default: none
  Shape lhs_dilation = {};    ///< from element to element of the array, with zeros between them
  Shape rhs_dilation = {};    ///< from element to element of a window
  ConvDimensionNumbers dimension_numbers = {};
  /// Channels of the array and of the result are so many groups, of which each has kernels of its own: rhs has C / groups input channels.
  std::int64_t feature_group_count = 1;
  std::int64_t batch_group_count = 1;  ///< the same of the batch, which is divided
};
/// lhs [n, c, spatial..] by rhs [o, c / groups, window..] -> [n, o, windows..]: out[n, o, i..] = sum over c and k.. of lhs[n, c, i stride
/// + k dilation..] rhs[o, c, k..]; zeros around the array and between its elements are multiplied too. Any number of spatial dimensions.
/// Operands are promoted; 16-bit floats are summed in float32, integers wrap, complex numbers are four real products. Where windows do
/// not fit the result is empty. Images, channels, groups and spatial dimensions may be cut over devices: of neighbours' tiles only the
/// edges move that windows reach into. Throws ShapeError for ranks, sizes, groups, strides and widths that do not fit, DTypeError for
/// bools, Error for dimension numbers and rules of padding that are none. Source: jax.lax.conv_general_dilated.
inline constexpr struct SHARDARRAY_API conv_general_dilated_fn {
  [[nodiscard]] Array operator()(const Array& lhs, const Array& rhs, const ConvOptions& o = {},
                                 Where w = Where::here()) const;
} conv_general_dilated{};
/// The same with strides and padding alone. Source: jax.lax.conv.
inline constexpr struct SHARDARRAY_API conv_fn {
  [[nodiscard]] Array operator()(const Array& lhs, const Array& rhs, const Shape& window_strides = {},
                                 const Padding& padding = {}, Where w = Where::here()) const;
} conv{};

/// Options of conv_transpose.
struct ConvTransposeOptions {
  Shape strides = {};       ///< of the convolution whose direction is turned round; empty: 1
  Padding padding = {};     ///< rules: of that convolution; widths: of the dilated array
  Shape rhs_dilation = {};  ///< from element to element of a window; empty: 1
  ConvDimensionNumbers dimension_numbers = {};  ///< empty: "NHWC", "HWIO", "NHWC", as in JAX
  bool transpose_kernel =
      false;  ///< the kernel turned round, I and O exchanged: the gradient of a convolution
  bool use_consistent_padding = false;  ///< widths, too, are those of that convolution
};
/// A convolution with holes: the array's elements stand `strides` apart. From the shape of a convolution's result to that of its array.
/// Throws as conv_general_dilated. Source: jax.lax.conv_transpose.
inline constexpr struct SHARDARRAY_API conv_transpose_fn {
  [[nodiscard]] Array operator()(const Array& lhs, const Array& rhs, const ConvTransposeOptions& o = {},
                                 Where w = Where::here()) const;
} conv_transpose{};

}  // namespace shardarray
