// Of what has_aux would give nothing more is said.
// expect: grad: the function must return one Array (a scalar loss); for (loss, aux) say {.has_aux = true}
#include "shardarray/grad.h"
#include "shardarray/ops.h"

namespace sa = shardarray;

sa::Array misuse(const sa::Array& x) {
  const auto loss = [](const sa::Array& v) { return std::pair(sa::sum(v * v), v); };
  const auto [value, gradient] = sa::value_and_grad(loss)(x);
  const auto& [l, aux] = value;
  return l + aux + gradient;
}
