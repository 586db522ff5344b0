// Convolutional layers as plain structs, with Equinox's names, values and initial bits. They take one example; use vmap for batches.
#pragma once
#include <cstdint>

#include "shardarray/convolution.h"

namespace shardarray::nn {

/// How an example is padded: with zeros, mirrored at its ends, with its end values, or periodically.
enum class PaddingMode : std::uint8_t { zeros, reflect, replicate, circular };

/// Options of Conv1d::init() and so on. Lists have one number per spatial dimension, or one for all; empty: 1.
struct ConvLayerOptions {
  Shape stride = {};
  Padding padding = {};
  Shape dilation = {};
  std::int64_t groups = 1;  ///< groups of input channels, each with its own output channels
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

  /// Uniform in +-1/sqrt(in / groups * number of window elements), with Equinox's bits. `kernel_size` has one number per spatial
  /// dimension, or one for all. Throws ShapeError for channels that are negative or no multiple of the groups, and for sizes that do not
  /// fit; DTypeError for a dtype that is not floating; Error for an unknown padding rule; and as random::split for an invalid key.
  [[nodiscard]] static Conv init(std::int64_t in_channels, std::int64_t out_channels,
                                 const Shape& kernel_size, const Array& key, const ConvLayerOptions& o = {},
                                 Where w = Where::here());
  /// [in, spatial..] -> [out, windows..]. Throws ShapeError for another rank, other channels and if no window fits (Equinox: an empty
  /// result), and as conv_general_dilated.
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const;
};
using Conv1d = Conv<1>;
using Conv2d = Conv<2>;
using Conv3d = Conv<3>;

/// Options of ConvTranspose1d::init() and so on, as ConvLayerOptions: those of the convolution that is transposed.
struct ConvTransposeLayerOptions {
  Shape stride = {};
  Shape output_padding =
      {};  ///< elements added at the end of each dimension of the result, less than the stride; empty: 0
  Padding padding = {};
  Shape dilation = {};
  std::int64_t groups = 1;
  bool use_bias = true;
  PaddingMode padding_mode =
      PaddingMode::zeros;  ///< or circular: with padding "SAME" or "SAME_LOWER" and no output_padding
  DType dtype = float32;
};

/// A transposed convolution: from the shape of a convolution's result to that of its input.
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

  /// As Conv::init(). Also throws ShapeError unless output_padding is less than the stride, Error for a padding_mode that is incompatible
  /// with the padding.
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
