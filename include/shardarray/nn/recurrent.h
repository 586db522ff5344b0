// Recurrent cells: one step. Use scan (control_flow.h) for many:
//
//     auto [last, all] = scan([&](Array h, Array x) { h = cell(x, h); return std::pair(h, h); }, zeros(cell_size), xs);
#pragma once
#include <utility>

#include "shardarray/ops.h"

namespace shardarray::nn {

/// Options of GRUCell::init() and LSTMCell::init().
struct CellOptions {
  bool use_bias = true;   ///< false: biases are absent
  DType dtype = float32;  ///< of weights and biases, floating
};
/// A gated recurrent unit. Weights and bias stack the gates along rows: reset, update, new. Source: K. Cho et al. (2014).
struct SHARDARRAY_API GRUCell {
  Array weight_ih;  ///< [3 hidden, in]
  Array weight_hh;  ///< [3 hidden, hidden]
  Array bias;       ///< [3 hidden]; absent: 0
  Array bias_n;     ///< [hidden], of the new gate's hidden part; absent: 0
  /// Uniform in +-1/sqrt(hidden), with Equinox's bits. Throws ShapeError for a negative size and a hidden size of 0, DTypeError for a
  /// dtype that is not floating, and as random::split for an invalid key.
  [[nodiscard]] static GRUCell init(std::int64_t input_size, std::int64_t hidden_size, const Array& key,
                                    const CellOptions& o = {}, Where w = Where::here());
  /// x [in] and the hidden state [hidden] -> the next hidden state. Throws ShapeError for anything else.
  [[nodiscard]] Array operator()(const Array& x, const Array& hidden, Where w = Where::here()) const;
};
/// Long short-term memory. Weights and bias stack the gates along rows: input, forget, cell, output. Source: S. Hochreiter, J.
/// Schmidhuber (1997).
struct SHARDARRAY_API LSTMCell {
  Array weight_ih;  ///< [4 hidden, in]
  Array weight_hh;  ///< [4 hidden, hidden]
  Array bias;       ///< [4 hidden]; absent: 0
  /// As GRUCell::init().
  [[nodiscard]] static LSTMCell init(std::int64_t input_size, std::int64_t hidden_size, const Array& key,
                                     const CellOptions& o = {}, Where w = Where::here());
  /// x [in] and (h, c), each [hidden] -> the next (h, c). Throws ShapeError for anything else.
  [[nodiscard]] std::pair<Array, Array> operator()(const Array& x, const std::pair<Array, Array>& hidden,
                                                   Where w = Where::here()) const;
};

}  // namespace shardarray::nn
