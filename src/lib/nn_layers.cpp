// Dropout, Embedding, PReLU and the cells of recurrent networks.
#include <fmt/core.h>

#include <cmath>

#include "ops/api.h"
#include "shardarray/nn/layers.h"
#include "shardarray/nn/recurrent.h"
#include "shardarray/random.h"

namespace shardarray::nn {

Array Dropout::operator()(const Array& x, const CallOptions& o, Where w) const {
  constexpr const char* function = "nn::Dropout";
  const Site site(w, function);
  const Type& t = type_of(x, function);
  if (!(p >= 0 && p <= 1))
    throw Error(fmt::format("{}: p is {}. A part of the elements is from 0 to 1. Correct it.", function, p));
  if (o.inference.value_or(inference) || p == 0) return x;
  if (!o.key.has_value())
    throw Error(fmt::format(
        "{}: there is no key. In training it draws random numbers. Call layer(x, {{.key = key}}), or "
        "layer(x, {{.inference = true}}), or the model that inference_mode() gives.",
        function));
  const double kept = 1 - p;
  const Array mask = random::bernoulli(o.key, kept, t.shape);
  return where(mask, x / (kept == 0 ? 1 : kept), 0);  // no NaN for p = 1, nor in its derivative
}

Embedding Embedding::init(std::int64_t num_embeddings, std::int64_t embedding_size, const Array& key,
                          const EmbeddingOptions& o, Where w) {
  const Site site(w, "nn::Embedding");
  if (num_embeddings < 0 || embedding_size < 0)
    throw ShapeError(fmt::format("nn::Embedding: a table of {} x {}. Sizes are at least 0. Correct them.",
                                 num_embeddings, embedding_size));
  return {random::normal(key, {num_embeddings, embedding_size}, o.dtype)};
}

Array Embedding::operator()(const Array& x, Where w) const {
  constexpr const char* function = "nn::Embedding";
  const Site site(w, function);
  const Type &t = type_of(x, function), &of_weight = type_of(weight, function);
  if (!is_integer(t.dtype))
    throw DTypeError(
        fmt::format("{}: x is {}. It is the number of a row, an integer. Convert it with astype().", function,
                    to_string(t)));
  if (!t.shape.empty() || of_weight.shape.size() != 2)
    throw ShapeError(
        fmt::format("{}: x is {}, the weight {}. A call takes one number, the weight is [number, size]. "
                    "Batch with vmap(layer)(x).",
                    function, to_string(t), to_string(of_weight)));
  return weight[x];
}

Array PReLU::operator()(const Array& x, Where w) const {
  constexpr const char* function = "nn::PReLU";
  const Site site(w, function);
  const Type &t = type_of(x, function), &of_slope = type_of(negative_slope, function);
  Array r = shardarray::where(x >= 0, x, negative_slope * x);
  if (type_of(r).shape != t.shape)
    throw ShapeError(fmt::format("{}: x is {}, the slope {}. The slope is broadcast to x. Correct it.",
                                 function, to_string(t), to_string(of_slope)));
  return r;
}

// ---------------------------------------------------------------- cells
namespace {

// The initial values of both cells, uniform within +-sqrt(1 / hidden): one key per array.
struct CellDraw {
  Array keys;
  double limit;
  CellDraw(const char* function, std::int64_t in, std::int64_t hidden, const Array& key, std::int64_t n) {
    if (in < 0 || hidden < 1)
      throw ShapeError(
          fmt::format("{}: sizes {} -> {}. The input's is at least 0, the state's 1. Correct them.", function,
                      in, hidden));
    keys = random::split(key, n);
    limit = std::sqrt(1 / static_cast<double>(hidden));
  }
  Array draw(std::int64_t k, const Shape& shape, DType t) const {
    return random::uniform(keys[k], shape, t, -limit, limit);
  }
};

void check_cell(const char* function, const Array& weight_ih, const Array& weight_hh, std::int64_t gates,
                const Array& x, const Array& hidden) {
  const Type &t = type_of(x, function), &h = type_of(hidden, function), &ih = type_of(weight_ih, function),
             &hh = type_of(weight_hh, function);
  const bool fits = ih.shape.size() == 2 && hh.shape.size() == 2 && t.shape.size() == 1 &&
                    h.shape.size() == 1 && ih.shape[1] == t.shape[0] && hh.shape[1] == h.shape[0] &&
                    hh.shape[0] == gates * h.shape[0] && ih.shape[0] == hh.shape[0];
  if (!fits)
    throw ShapeError(
        fmt::format("{}: x is {}, the state {}, the weights {} and {}. A cell takes one vector of each of "
                    "the weights' last sizes. Batch with vmap(cell)(x, state).",
                    function, to_string(t), to_string(h), to_string(ih), to_string(hh)));
}

}  // namespace

GRUCell GRUCell::init(std::int64_t input_size, std::int64_t hidden_size, const Array& key,
                      const CellOptions& o, Where w) {
  const Site site(w, "nn::GRUCell");
  const CellDraw d("nn::GRUCell", input_size, hidden_size, key, 4);
  GRUCell r{d.draw(0, {3 * hidden_size, input_size}, o.dtype),
            d.draw(1, {3 * hidden_size, hidden_size}, o.dtype),
            {},
            {}};
  if (o.use_bias) {
    r.bias = d.draw(2, {3 * hidden_size}, o.dtype);
    r.bias_n = d.draw(3, {hidden_size}, o.dtype);
  }
  return r;
}

Array GRUCell::operator()(const Array& x, const Array& hidden, Where w) const {
  const Site site(w, "nn::GRUCell");
  check_cell("nn::GRUCell", weight_ih, weight_hh, 3, x, hidden);
  Array of_input = matmul(weight_ih, x);
  if (bias.has_value()) of_input = of_input + bias;
  const std::vector<Array> i = shardarray::split(of_input, 3),
                           h = shardarray::split(matmul(weight_hh, hidden), 3);
  const Array reset = sigmoid(i[0] + h[0]), update = sigmoid(i[1] + h[1]);
  const Array next = tanh(i[2] + reset * (bias_n.has_value() ? h[2] + bias_n : h[2]));
  return next + update * (hidden - next);
}

LSTMCell LSTMCell::init(std::int64_t input_size, std::int64_t hidden_size, const Array& key,
                        const CellOptions& o, Where w) {
  const Site site(w, "nn::LSTMCell");
  const CellDraw d("nn::LSTMCell", input_size, hidden_size, key, 3);
  LSTMCell r{d.draw(0, {4 * hidden_size, input_size}, o.dtype),
             d.draw(1, {4 * hidden_size, hidden_size}, o.dtype),
             {}};
  if (o.use_bias) r.bias = d.draw(2, {4 * hidden_size}, o.dtype);
  return r;
}

std::pair<Array, Array> LSTMCell::operator()(const Array& x, const std::pair<Array, Array>& hidden,
                                             Where w) const {
  const Site site(w, "nn::LSTMCell");
  const auto& [h, c] = hidden;
  check_cell("nn::LSTMCell", weight_ih, weight_hh, 4, x, h);
  if (const Type& t = type_of(c, "nn::LSTMCell"); t.shape != type_of(h).shape)
    throw ShapeError(fmt::format("nn::LSTMCell: the state is {} and {}. Both have one size. Correct them.",
                                 to_string(type_of(h)), to_string(t)));
  Array all_gates = matmul(weight_ih, x) + matmul(weight_hh, h);
  if (bias.has_value()) all_gates = all_gates + bias;
  const std::vector<Array> gate = shardarray::split(all_gates, 4);
  const Array next = sigmoid(gate[1]) * c + sigmoid(gate[0]) * tanh(gate[2]);
  return {sigmoid(gate[3]) * tanh(next), next};
}

}  // namespace shardarray::nn
