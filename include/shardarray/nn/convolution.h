// Convolutional layers as plain structs, with Equinox's names, values and initial bits. They take one example; batch with vmap.
#pragma once
#include <cstdint>

#include "shardarray/convolution.h"

namespace shardarray::nn {

/// What stands around an example: zeros, the example mirrored at its ends, its ends, or the example again.
enum class PaddingMode : std::uint8_t { zeros, reflect, replicate, circular };

/// Options of Conv1d::init() and so on. Lists have a number for each spatial dimension, or one for all; empty: 1.
struct ConvLayerOptions {
  Shape stride = {};
  Padding padding = {};
  Shape dilation = {};
  std::int64_t groups = 1;  ///< groups of input channels, each with output channels of its own
  bool use_bias = true;     ///< false: bias is absent
  PaddingMode padding_mode = PaddingMode::zeros;
  DType dtype = float32;  ///< of weight and bias
};

/// A convolution over `dims` spatial dimensions, 1 to 3.
template <int dims> struct SHARDARRAY_API Conv {
  Array weight;  ///< [out, in / groups, window..]
  Array bias;    ///< [out, 1..]; absent without a bias
  std::int64_t in_channels = 0, out_channels = 0;
  Shape kernel_size, stride;
  Padding padding;
  Shape dilation;
  std::int64_t groups = 1;
  bool use_bias = true;
  PaddingMode padding_mode = PaddingMode::zeros;

  /// Uniform in +-1/sqrt(in / groups * the window's elements), with Equinox's bits. `kernel_size` has a number for each spatial dimension, or
  /// one for all. Throws ShapeError for channels that are negative or no multiple of the groups, and for sizes that do not fit;
  /// DTypeError for a dtype that is no float; Error for an unknown rule of padding; and as random::split for what is no single key.
  [[nodiscard]] static Conv init(std::int64_t in_channels, std::int64_t out_channels,
                                 const Shape& kernel_size, const Array& key, const ConvLayerOptions& o = {},
                                 Where w = Where::here());
  /// [in, spatial..] -> [out, windows..]. Throws ShapeError for another rank, other channels and where no window fits (Equinox: an
  /// empty result), and as conv_general_dilated.
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const;
};
using Conv1d = Conv<1>;
using Conv2d = Conv<2>;
using Conv3d = Conv<3>;

/// Options of ConvTranspose1d::init() and so on, as ConvLayerOptions: of the convolution whose direction is turned round.
struct ConvTransposeLayerOptions {
  Shape stride = {};
  Shape output_padding =
      {};  ///< elements more behind each dimension of the result, less than the stride; empty: 0
  Padding padding = {};
  Shape dilation = {};
  std::int64_t groups = 1;
  bool use_bias = true;
  PaddingMode padding_mode =
      PaddingMode::zeros;  ///< or circular: with padding "SAME" or "SAME_LOWER" and no output_padding
  DType dtype = float32;
};

/// A transposed convolution: from the shape of a convolution's result to that of its array.
template <int dims> struct SHARDARRAY_API ConvTranspose {
  Array weight;  ///< [out, in / groups, window..]
  Array bias;    ///< [out, 1..]; absent without a bias
  std::int64_t in_channels = 0, out_channels = 0;
  Shape kernel_size, stride;
  Padding padding;
  Shape output_padding, dilation;
  std::int64_t groups = 1;
  bool use_bias = true;
  PaddingMode padding_mode = PaddingMode::zeros;

  /// As Conv::init(). Throws also ShapeError for an output_padding that is not less than the stride, Error for a padding_mode that
  /// does not go with the padding.
  [[nodiscard]] static ConvTranspose init(std::int64_t in_channels, std::int64_t out_channels,
                                          const Shape& kernel_size, const Array& key,
                                          const ConvTransposeLayerOptions& o = {}, Where w = Where::here());
  /// [in, spatial..] -> [out, spatial..]. Throws ShapeError for another rank and other channels, and as conv_general_dilated.
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const;
};
using ConvTranspose1d = ConvTranspose<1>;
using ConvTranspose2d = ConvTranspose<2>;
using ConvTranspose3d = ConvTranspose<3>;

extern template struct Conv<1>;
extern template struct Conv<2>;
extern template struct Conv<3>;
extern template struct ConvTranspose<1>;
extern template struct ConvTranspose<2>;
extern template struct ConvTranspose<3>;

}  // namespace shardarray::nn
