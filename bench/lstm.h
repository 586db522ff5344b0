// The loss of a recurrent cell over dependent steps, unrolled: many small kernels in one chain.
#pragma once
#include <shardarray/shardarray.h>

namespace bench {

/// Of weights w [inputs, 4 n] and u [n, 4 n] on x [steps, batch, inputs].
inline shardarray::Array lstm_loss(const shardarray::Array& w, const shardarray::Array& u,
                                   const shardarray::Array& x) {
  namespace sa = shardarray;
  const std::int64_t steps = x.shape()[0], batch = x.shape()[1], n = u.shape()[0];
  sa::Array h = sa::zeros({batch, n}), c = h, loss(0.0f);
  for (std::int64_t t = 0; t < steps; t++) {
    const auto gates = sa::split(sa::matmul(x[t], w) + sa::matmul(h, u), 4, 1);
    c = sa::sigmoid(gates[0]) * c + sa::sigmoid(gates[1]) * sa::tanh(gates[2]);
    h = sa::sigmoid(gates[3]) * sa::tanh(c);
    loss = loss + sa::mean(sa::square(h));
  }
  return loss;
}

}  // namespace bench
