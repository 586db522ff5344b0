// Normalisations of layers, groups and batches.
#include "shardarray/nn/norms.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/count_text.h"
#include "graph/trace_state.h"
#include "ops/api.h"
#include "shardarray/optim/transform.h"

namespace shardarray::nn {

namespace {

// The dtype that statistics of x are computed in. Throws DTypeError unless x is floating.
DType statistics_type(const Array& x, const char* function) {
  const Type& t = type_of(x, function);
  if (!is_floating(t.dtype))
    throw DTypeError(fmt::format("{}: x is {}. What is normalised is floating. Convert it with astype().",
                                 function, to_string(t)));
  return promote_types(t.dtype, float32);
}

void need_sizes(const Shape& shape, const char* function) {
  for (const std::int64_t n : shape)
    if (n < 0)
      throw ShapeError(
          fmt::format("{}: shape {}. Sizes are at least 0. Correct them.", function, to_string(shape)));
}

void need_shape(const Array& x, const Shape& shape, const char* function) {
  const Type& t = type_of(x, function);
  if (t.shape == shape) return;
  const bool is_batch =
      t.shape.size() > shape.size() && std::equal(shape.begin(), shape.end(), t.shape.end() - shape.size());
  throw ShapeError(fmt::format(
      "{}: x is {}, the layer's shape {}. A call takes one example of that shape. {}.", function,
      to_string(t), to_string(shape),
      is_batch ? "Batch with vmap(layer)(x)" : "Give x that shape, or make the layer for that of x"));
}

Array normalised(const Array& x, const AxisSet& axes, double eps) {
  const ReduceOptions o{.axis = axes, .keepdims = true};
  return (x - mean(x, o)) * rsqrt(var(x, o) + eps);
}

// x * weight + bias, those that are present, in the dtype of x.
Array scaled(Array x, const Array& weight, const Array& bias) {
  const DType t = type_of(x).dtype;
  if (weight.has_value()) x = weight.astype(t) * x;
  if (bias.has_value()) x = x + bias.astype(t);
  return x;
}

// One number per channel, reshaped to broadcast with x; absent stays absent.
Array by_channel(const Array& v, const Shape& x) {
  if (!v.has_value()) return v;
  Shape shape = Shape::filled(x.size(), 1);
  shape[0] = num_elements(v.shape());
  return reshape(v, shape);
}

AxisSet behind_channels(const Shape& shape) {
  AxisSet r(Shape{});
  for (std::size_t k = 1; k < shape.size(); k++) r.axes.push_back(static_cast<std::int64_t>(k));
  return r;
}

// ones and zeros of a shape; absent if they are not wanted
Array first_weight(bool wanted, const Shape& shape, DType t) { return wanted ? ones(shape, t) : Array(); }
Array first_bias(bool wanted, const Shape& shape, DType t) { return wanted ? zeros(shape, t) : Array(); }

}  // namespace

LayerNorm LayerNorm::init(const Shape& shape, const LayerNormOptions& o, Where w) {
  const Site site(w, "nn::LayerNorm");
  need_sizes(shape, "nn::LayerNorm");
  return {shape, o.eps, first_weight(o.use_weight, shape, o.dtype), first_bias(o.use_bias, shape, o.dtype)};
}

Array LayerNorm::operator()(const Array& x, Where w) const {
  const Site site(w, "nn::LayerNorm");
  const DType t = statistics_type(x, "nn::LayerNorm");
  need_shape(x, shape, "nn::LayerNorm");
  return scaled(normalised(x.astype(t), {}, eps), weight, bias).astype(type_of(x).dtype);
}

RMSNorm RMSNorm::init(const Shape& shape, const LayerNormOptions& o, Where w) {
  const Site site(w, "nn::RMSNorm");
  need_sizes(shape, "nn::RMSNorm");
  return {shape, o.eps, first_weight(o.use_weight, shape, o.dtype), first_bias(o.use_bias, shape, o.dtype)};
}

Array RMSNorm::operator()(const Array& x, Where w) const {
  const Site site(w, "nn::RMSNorm");
  const DType t = statistics_type(x, "nn::RMSNorm");
  need_shape(x, shape, "nn::RMSNorm");
  const Array wide = x.astype(t);
  return scaled(rsqrt(mean(square(wide)) + eps) * wide, weight, bias).astype(type_of(x).dtype);
}

GroupNorm GroupNorm::init(std::int64_t groups, std::optional<std::int64_t> channels,
                          const GroupNormOptions& o, Where w) {
  constexpr const char* function = "nn::GroupNorm";
  const Site site(w, function);
  if (groups < 1 || (channels && (*channels < 0 || *channels % groups != 0)))
    throw ShapeError(
        fmt::format("{}: {} of {}. There is one group at least, and groups are of equal size. Correct them.",
                    function, count_text(groups, "group"), count_text(channels.value_or(0), "channel")));
  if (!channels && o.channelwise_affine)
    throw ShapeError(
        fmt::format("{}: the number of channels is not given. Weights and biases have one element for each. "
                    "Give it, or {{.channelwise_affine = false}}.",
                    function));
  const Shape shape{channels.value_or(0)};
  return {groups, o.eps, first_weight(o.channelwise_affine, shape, o.dtype),
          first_bias(o.channelwise_affine, shape, o.dtype)};
}

Array GroupNorm::operator()(const Array& x, Where w) const {
  constexpr const char* function = "nn::GroupNorm";
  const Site site(w, function);
  const DType t = statistics_type(x, function);
  const Shape shape = type_of(x).shape;
  const bool fits = !shape.empty() && groups > 0 && shape[0] % groups == 0 &&
                    (!weight.has_value() || type_of(weight).shape == Shape{shape[0]});
  if (!fits)
    throw ShapeError(
        fmt::format("{}: x is {}, {}, the weight {}. The first dimension has the channels, which the groups "
                    "divide and the weight has an element for. Batch with vmap(layer)(x).",
                    function, to_string(type_of(x)), count_text(groups, "group"),
                    weight.has_value() ? to_string(type_of(weight)) : "absent"));
  Shape grouped = shape;
  grouped[0] = shape[0] / groups;
  grouped.insert(0, groups);
  const Array y = normalised(reshape(x.astype(t), grouped), behind_channels(grouped), eps);
  return scaled(reshape(y, shape), by_channel(weight, shape), by_channel(bias, shape))
      .astype(type_of(x).dtype);
}

// ---------------------------------------------------------------- BatchNorm
// Mode batch divides by 1 - momentum^count, the weight of the batches seen so far: 0 for momentum 1, where Equinox gives NaN.
static void check_momentum(const char* function, double momentum, BatchNormMode mode) {
  if (!(momentum >= 0 && momentum <= 1))
    throw Error(fmt::format(
        "{}: momentum {}. It is what the running statistics keep of themselves, from 0 to 1. Correct it.",
        function, momentum));
  if (momentum == 1 && mode == BatchNormMode::batch)
    throw Error(
        fmt::format("{}: momentum 1 in mode batch. The running statistics would never see a batch, and "
                    "inference divides by what they have seen. Choose less than 1, or mode ema.",
                    function));
}
BatchNorm BatchNorm::init(std::int64_t input_size, const NamedAxes& axis_name, const BatchNormOptions& o,
                          Where w) {
  constexpr const char* function = "nn::BatchNorm";
  const Site site(w, function);
  if (input_size < 0)
    throw ShapeError(
        fmt::format("{}: {} channels. There are at least 0. Correct the number.", function, input_size));
  if (!is_floating(o.dtype))
    throw DTypeError(fmt::format("{}: dtype {}. Statistics are floating. Choose a floating dtype.", function,
                                 name(o.dtype)));
  check_momentum(function, o.momentum, o.mode);
  if (axis_name.names.empty())
    throw Error(
        fmt::format("{}: there is no name of an axis. Statistics are over the map of that name. Give the "
                    "axis_name of vmap.",
                    function));
  const Shape shape{input_size};
  return {.weight = first_weight(o.channelwise_affine, shape, o.dtype),
          .bias = first_bias(o.channelwise_affine, shape, o.dtype),
          .axis_name = axis_name.names,
          .inference = o.inference,
          .input_size = input_size,
          .eps = o.eps,
          .momentum = o.momentum,
          .mode = o.mode,
          .dtype = o.dtype};
}

BatchNormState BatchNorm::init_state(Where w) const {
  const Site site(w, "nn::BatchNorm");
  const Shape shape{input_size};
  return {zeros({}, int32), zeros(shape, dtype),
          mode == BatchNormMode::ema ? zeros(shape, dtype) : ones(shape, dtype)};
}

std::pair<Array, BatchNormState> BatchNorm::operator()(const Array& x, const BatchNormState& state,
                                                       const CallOptions& o, Where w) const {
  constexpr const char* function = "nn::BatchNorm";
  const Site site(w, function);
  const DType t = statistics_type(x, function);
  const Shape shape = type_of(x).shape;
  if (shape.empty() || shape[0] != input_size)
    throw ShapeError(
        fmt::format("{}: x is {}, the layer has {}. They are the first dimension. Batch with vmap(layer, "
                    "{{.in_axes = {{0, none}}, .out_axes = {{0, none}}, .axis_name = ..}})(x, state).",
                    function, to_string(type_of(x)), count_text(input_size, "channel")));
  const bool training = !o.inference.value_or(inference), running = mode == BatchNormMode::ema;
  check_momentum(function, momentum, mode);
  BatchNormState next = state;
  Array m = state.mean, v = state.var;
  if (training) {
    for (const std::string& name : axis_name) (void)find_axis(name, function);
    const NamedAxes axis{AxisNames{axis_name}};
    const AxisSet rest = behind_channels(shape);
    const Array wide = x.astype(t);
    m = pmean(mean(wide, {.axis = rest}), axis);
    v = pmean(mean(square(wide - by_channel(m, shape)), {.axis = rest}), axis);
    auto moved = [&](const Array& before, const Array& now) {
      return before * momentum + now * (1.0 - momentum);
    };
    next = {optim::detail::next_count(state.count), moved(state.mean, m), moved(state.var, v)};
    if (running) {  // they start with the first batch
      const Array first = state.count == 0;
      next.mean = m = where(first, m, next.mean);
      next.var = v = where(first, v, next.var);
    }
    next.mean = next.mean.astype(dtype);
    next.var = next.var.astype(dtype);
  } else if (!running) {  // bias correction for their initial values
    const Array seen = where(state.count == 0, 1.0, 1.0 - power(momentum, state.count));
    m = m / seen;
    v = v / seen;
  }
  Array y = (x - by_channel(m, shape)) / sqrt(by_channel(v, shape) + eps);
  if (weight.has_value()) y = y * by_channel(weight, shape);
  if (bias.has_value()) y = y + by_channel(bias, shape);
  DType result = promote_types(type_of(x).dtype, type_of(state.mean).dtype);  // statistics may be wider
  for (const Array& a : {weight, bias})
    if (a.has_value()) result = promote_types(result, type_of(a).dtype);
  return {y.astype(result), next};
}

}  // namespace shardarray::nn
