#include "shardarray/nn.h"

#include <fmt/core.h>

#include <cmath>

#include "graph/node.h"
#include "shardarray/random.h"

namespace shardarray::nn {

void throw_no_layers() {
  throw TreeError(
      "nn::MLP: there is no layer. A call needs one at least. Make the model with nn::mlp() or MLP::init().");
}

Linear Linear::init(Features in, Features out, const Array& key, const LinearOptions& o, Where w) {
  const Site site(w, "nn::Linear");
  if (in.size < 0 || out.size < 0)
    throw ShapeError(
        fmt::format("nn::Linear: sizes {} -> {}. Sizes are at least 0. Correct them.", in.size, out.size));
  const auto [weight_key, bias_key] = random::split<2>(key);
  const double limit = in.size == 0 ? 1 : 1 / std::sqrt(static_cast<double>(in.size));
  Linear r{random::uniform(weight_key, {out.size, in.size}, o.dtype, -limit, limit), {}};
  if (o.use_bias) r.bias = random::uniform(bias_key, {out.size}, o.dtype, -limit, limit);
  r.scalar_in = in.is_scalar;
  r.scalar_out = out.is_scalar;
  return r;
}

Array Linear::operator()(const Array& x, Where w) const {
  const Site site(w, "nn::Linear");
  const Type &t = type_of(x, "nn::Linear"), &of_weight = type_of(weight, "nn::Linear");
  const bool is_matrix = of_weight.shape.size() == 2;
  if (!is_matrix || (scalar_in ? !t.shape.empty() || of_weight.shape[1] != 1
                               : t.shape.size() != 1 || t.shape[0] != of_weight.shape[1]))
    throw ShapeError(fmt::format(
        "nn::Linear: x is {}, the weight {}. A layer takes one {}. {}.", to_string(t), to_string(of_weight),
        scalar_in ? "scalar, and its weight is one column" : "vector of the weight's last size",
        is_matrix && (scalar_in ? of_weight.shape[1] == 1
                                : t.shape.size() > 1 && t.shape.back() == of_weight.shape[1])
            ? "Batch with vmap(model)(x)"
            : "Give x that size, or make the layer with Linear::init(size of x, size of the result, key)"));
  if (scalar_out && of_weight.shape[0] != 1)
    throw ShapeError(
        fmt::format("nn::Linear: the weight is {}. The weight of a layer that gives a scalar is one row. "
                    "Make the layer with Linear::init(in, nn::scalar, key).",
                    to_string(of_weight)));
  Array y = matmul(weight, scalar_in ? reshape(x, {1}) : x);
  if (bias.has_value()) y = y + bias;
  return scalar_out ? reshape(y, Shape{}) : y;
}

std::vector<Linear> mlp_layers(Features in, Features out, std::int64_t width, std::int64_t depth,
                               const Array& key, const MLPOptions& o, Where w) {
  const Site site(w, "nn::MLP");
  constexpr std::int64_t most = std::int64_t{1} << 20;
  if (depth < 0 || depth > most)
    throw ShapeError(fmt::format("nn::MLP: depth {}. The number of hidden layers is at {}. Correct it.",
                                 depth, depth < 0 ? "least 0" : "most 2^20"));
  const Array keys = random::split(key, depth + 1);
  std::vector<Linear> layers;
  for (std::int64_t k = 0; k <= depth; k++)
    layers.push_back(
        Linear::init(k == 0 ? in : width, k == depth ? out : width, keys[k],
                     {.use_bias = k == depth ? o.use_final_bias : o.use_bias, .dtype = o.dtype}));
  return layers;
}

}  // namespace shardarray::nn
