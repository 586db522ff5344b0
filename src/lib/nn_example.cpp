#include "lib/nn_example.h"
#include "base/count_text.h"

#include <fmt/core.h>

namespace shardarray::nn {

void need_example(const char* layer, const Array& x, std::size_t dims) {
  const Type& t = type_of(x, layer);
  if (t.shape.size() == dims + 1) return;
  throw ShapeError(
      fmt::format("{}: x is {}. A layer takes one example of rank {}: channels and {}. {}.", layer,
                  to_string(t), dims + 1, count_text(dims, "spatial dimension"),
                  t.shape.size() > dims + 1 ? "Batch with vmap(model)(x)"
                  : t.shape.size() == dims
                      ? "Insert the channels with expand_dims(x, 0), or use a layer of fewer dimensions"
                      : "Use a layer of fewer dimensions"));
}

void need_windows(const char* layer, const Array& x, const Array& y, const Shape& window) {
  const Shape &from = type_of(x).shape, &to = type_of(y).shape;
  for (std::size_t d = 1; d < to.size(); d++)
    if (to[d] == 0 && from[d] > 0)
      throw ShapeError(fmt::format(
          "{}: no window {} fits into x {}. The result has one element for each window. Use a smaller "
          "kernel_size or dilation, or padding \"SAME\".",
          layer, to_string(window), to_string(type_of(x))));
}

}  // namespace shardarray::nn
