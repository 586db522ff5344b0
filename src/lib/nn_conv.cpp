// Convolutional layers: Equinox's initial values and padding around conv_general_dilated.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/count_text.h"
#include "lib/nn_example.h"
#include "ops/windows.h"
#include "shardarray/nn/convolution.h"
#include "shardarray/random.h"

namespace shardarray::nn {

namespace {

/// One number for each of `rank` dimensions.
Shape layer_sizes(const char* layer, const char* what, const Shape& given, std::size_t rank) {
  if (given.empty())
    throw ShapeError(
        fmt::format("{}: {} {}. There is one number for each of {}, or one for all. Add numbers.", layer,
                    what, to_string(given), count_text(rank, "spatial dimension")));
  return windows::per_dimension(layer, what, given, rank);
}

/// The fields that Conv and ConvTranspose share.
template <class Layer, class Options>
Layer made_layer(const char* name, std::size_t dims, std::int64_t in, std::int64_t out,
                 const Shape& kernel_size, const Array& key, const Options& o) {
  if (in < 0 || out < 0 || o.groups < 1 || in % o.groups != 0 || out % o.groups != 0)
    throw ShapeError(fmt::format(
        "{}: {} to {} in {}. Channels are not negative, and multiples of the groups. Correct them.", name,
        count_text(in, "channel"), out, count_text(o.groups, "group")));
  if (!is_floating(o.dtype))
    throw DTypeError(
        fmt::format("{}: dtype {}. Weights are real floats. Use float32.", name, shardarray::name(o.dtype)));
  windows::rule_of(name, o.padding);
  Layer r;
  r.in_channels = in;
  r.out_channels = out;
  r.kernel_size = layer_sizes(name, "kernel_size", kernel_size, dims);
  r.stride = windows::per_dimension(name, "stride", o.stride, dims);
  r.padding = o.padding;
  r.dilation = windows::per_dimension(name, "dilation", o.dilation, dims);
  r.groups = o.groups;
  r.use_bias = o.use_bias;
  r.padding_mode = o.padding_mode;
  const auto [weight_key, bias_key] = random::split<2>(key);
  Shape of_weight{out, in / o.groups}, of_bias{out};
  for (const std::int64_t n : r.kernel_size) {
    of_weight.push_back(n);
    of_bias.push_back(1);
  }
  const std::int64_t each = num_elements(of_weight) == 0 ? 0 : num_elements(of_weight) / out;
  const double limit = each == 0 ? 1 : 1 / std::sqrt(static_cast<double>(each));
  r.weight = random::uniform(weight_key, of_weight, o.dtype, -limit, limit);
  if (o.use_bias) r.bias = random::uniform(bias_key, of_bias, o.dtype, -limit, limit);
  return r;
}

constexpr const char* conv_names[] = {"nn::Conv1d", "nn::Conv2d", "nn::Conv3d"};
constexpr const char* transposed_names[] = {"nn::ConvTranspose1d", "nn::ConvTranspose2d",
                                            "nn::ConvTranspose3d"};

/// Fields may come from a file or from the user: throws ShapeError for lists of another length than `dims`, and for numbers with which
/// there is no convolution.
template <class Layer> void check_fields(const char* name, const Layer& l, std::size_t dims) {
  const auto fits = [&](const Shape& s) {
    return s.size() == dims && std::all_of(s.begin(), s.end(), [](std::int64_t n) { return n > 0; });
  };
  if (!fits(l.stride) || !fits(l.dilation) || l.kernel_size.size() != dims || l.groups < 1)
    throw ShapeError(
        fmt::format("{}: stride {}, dilation {}, kernel_size {} and {} of a layer of {}. Lists have a number "
                    "for each, and strides, dilations and groups are at least 1. Correct them.",
                    name, to_string(l.stride), to_string(l.dilation), to_string(l.kernel_size),
                    count_text(l.groups, "group"), count_text(dims, "spatial dimension")));
}

/// Throws ShapeError for another rank, and for channels other than the weight's (not the layer's: shard_map gives it a part of both).
template <class Layer> void need_input(const char* name, const Layer& l, const Array& x, std::size_t dims) {
  need_example(name, x, dims);
  check_fields(name, l, dims);
  const Type &t = type_of(x), &of_weight = type_of(l.weight, name);
  if (of_weight.shape.size() != dims + 2) return;
  const std::int64_t channels = mul_sizes(of_weight.shape[1], l.groups);
  if (t.shape[0] == channels) return;
  throw ShapeError(fmt::format("{}: x is {}, the weight {} for {}. The first dimension has the channels. {}.",
                               name, to_string(t), to_string(of_weight), count_text(channels, "channel"),
                               t.shape.back() == channels
                                   ? "Move them there with moveaxis(x, -1, 0)"
                                   : fmt::format("Give x that many, or make the layer for {}", t.shape[0])));
}

/// Convolves one example with a kernel, and adds the bias.
Array layer_conv(const Array& x, const Array& weight, const Array& bias, const ConvOptions& o) {
  const Array y = squeeze(conv_general_dilated(expand_dims(x, 0), weight, o), 0);
  return bias.has_value() ? y + bias : y;
}

Shape spatial_sizes(const Array& x) { return Shape(x.shape().begin() + 1, x.shape().end()); }

/// Pads the spatial dimensions, not the channels.
Array padded_example(const Array& x, windows::Widths widths, PadMode mode) {
  widths.insert(widths.begin(), {0, 0});
  return pad(x, widths, mode);
}

Shape reaches_of_kernel(const Shape& kernel_size, const Shape& dilation) {
  Shape r;
  for (std::size_t d = 0; d < kernel_size.size(); d++)
    r.push_back(windows::reach(kernel_size[d], dilation[d]));
  return r;
}

/// The padding of the dilated example: relationship 14 of V. Dumoulin, F. Visin, A guide to convolution arithmetic for deep learning, 2016.
template <class Layer> windows::Widths transposed_widths(const char* name, const Layer& l) {
  const std::size_t dims = l.kernel_size.size();
  const std::string rule = windows::rule_of(name, l.padding);
  const Shape reaches = reaches_of_kernel(l.kernel_size, l.dilation);
  windows::Widths given(dims, {0, 0});
  if (rule.empty()) given = windows::widths_of(name, l.padding, l.kernel_size, reaches, l.stride);
  windows::Widths r;
  for (std::size_t d = 0; d < dims; d++) {
    const std::int64_t over = reaches[d] - 1;
    std::int64_t more = l.output_padding[d];
    auto [lo, hi] = given[d];
    if (rule == "SAME" || rule == "SAME_LOWER") {
      const std::int64_t all = over - l.stride[d] + more + 1;
      more = std::max<std::int64_t>(0, -all);
      lo = (std::max<std::int64_t>(0, all) + (rule == "SAME_LOWER" ? 1 : 0)) / 2;
      hi = std::max<std::int64_t>(0, all) - lo;
    }
    r.emplace_back(over - lo, over - hi + more);
  }
  return r;
}

}  // namespace

template <int dims>
Conv<dims> Conv<dims>::init(std::int64_t in_channels, std::int64_t out_channels, const Shape& kernel_size,
                            const Array& key, const ConvLayerOptions& o, Where w) {
  constexpr const char* name = conv_names[dims - 1];
  const Site site(w, name);
  return made_layer<Conv<dims>>(name, dims, in_channels, out_channels, kernel_size, key, o);
}

template <int dims> Array Conv<dims>::operator()(const Array& x, Where w) const {
  constexpr const char* name = conv_names[dims - 1];
  const Site site(w, name);
  need_input(name, *this, x, dims);
  ConvOptions o{
      .window_strides = stride, .padding = padding, .rhs_dilation = dilation, .feature_group_count = groups};
  const Shape reaches = reaches_of_kernel(kernel_size, dilation);
  Array wide = x;
  if (padding_mode != PaddingMode::zeros) {
    o.padding = Padding();
    const PadMode mode = padding_mode == PaddingMode::reflect     ? PadMode::reflect
                         : padding_mode == PaddingMode::replicate ? PadMode::edge
                                                                  : PadMode::wrap;
    wide = padded_example(x, windows::widths_of(name, padding, spatial_sizes(x), reaches, stride), mode);
  }
  Array y = layer_conv(wide, weight, bias, o);
  need_windows(name, x, y, reaches);
  return y;
}

template <int dims>
ConvTranspose<dims> ConvTranspose<dims>::init(std::int64_t in_channels, std::int64_t out_channels,
                                              const Shape& kernel_size, const Array& key,
                                              const ConvTransposeLayerOptions& o, Where w) {
  constexpr const char* name = transposed_names[dims - 1];
  const Site site(w, name);
  auto r = made_layer<ConvTranspose<dims>>(name, dims, in_channels, out_channels, kernel_size, key, o);
  r.output_padding =
      o.output_padding.size() == 1 ? Shape::filled(dims, o.output_padding[0]) : o.output_padding;
  if (r.output_padding.empty()) r.output_padding = Shape::filled(dims, 0);
  bool fits = r.output_padding.size() == dims, is_none = true;
  for (std::size_t d = 0; fits && d < dims; d++) {
    fits = r.output_padding[d] >= 0 && r.output_padding[d] < r.stride[d];
    is_none = is_none && r.output_padding[d] == 0;
  }
  if (!fits)
    throw ShapeError(fmt::format(
        "{}: output_padding {} with stride {}. It is not negative and less than the stride. Correct it.",
        name, to_string(o.output_padding), to_string(r.stride)));
  const std::string rule = windows::rule_of(name, o.padding);
  const bool circular = o.padding_mode == PaddingMode::circular;
  if (o.padding_mode != PaddingMode::zeros &&
      !(circular && is_none && (rule == "SAME" || rule == "SAME_LOWER")))
    throw Error(
        fmt::format("{}: padding_mode {}. It is zeros, or circular with padding \"SAME\" or \"SAME_LOWER\" "
                    "and no output_padding. Correct it.",
                    name,
                    circular                                 ? "circular"
                    : o.padding_mode == PaddingMode::reflect ? "reflect"
                                                             : "replicate"));
  return r;
}

template <int dims> Array ConvTranspose<dims>::operator()(const Array& x, Where w) const {
  constexpr const char* name = transposed_names[dims - 1];
  const Site site(w, name);
  need_input(name, *this, x, dims);
  if (output_padding.size() != dims)
    throw ShapeError(fmt::format("{}: output_padding {} of {}. It has a number for each. Correct it.", name,
                                 to_string(output_padding), count_text(dims, "spatial dimension")));
  windows::Widths widths = transposed_widths(name, *this);
  Array y = x;
  if (padding_mode == PaddingMode::circular) {
    windows::Widths around;
    for (std::size_t d = 0; d < widths.size(); d++) {
      auto& [lo, hi] = widths[d];
      around.emplace_back(lo / stride[d], hi / stride[d]);
      lo %= stride[d];
      hi %= stride[d];
    }
    y = padded_example(x, around, PadMode::wrap);
  }
  return layer_conv(
      y, weight, bias,
      {.padding = widths, .lhs_dilation = stride, .rhs_dilation = dilation, .feature_group_count = groups});
}

template struct Conv<1>;
template struct Conv<2>;
template struct Conv<3>;
template struct ConvTranspose<1>;
template struct ConvTranspose<2>;
template struct ConvTranspose<3>;

}  // namespace shardarray::nn
