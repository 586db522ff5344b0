// Convolutions by plain loops, on what is padded by plain loops.
#pragma once
#include <utility>
#include <vector>

#include "op_host.h"

namespace shardarray::testing {

/// Of arrays [n, c, spatial..] and kernels [o, c, spatial..]; lists have a number for each spatial dimension.
struct PlainConv {
  std::vector<std::int64_t> stride, holes, dilation;
  std::vector<std::pair<std::int64_t, std::int64_t>> padding;
  std::int64_t groups = 1, batch_groups = 1;

  Shape result(const Shape& x, const Shape& kernel) const {
    Shape r{x[0] / batch_groups, kernel[0]};
    for (std::size_t d = 0; d < stride.size(); d++) {
      const std::int64_t size = x[d + 2] == 0 ? 0 : (x[d + 2] - 1) * holes[d] + 1,
                         over = (kernel[d + 2] - 1) * dilation[d] + 1,
                         all = size + padding[d].first + padding[d].second;
      r.push_back(all < over ? 0 : (all - over) / stride[d] + 1);
    }
    return r;
  }

  std::vector<double> operator()(const HostArray& x, const HostArray& kernel) const {
    Shape window = kernel.shape;
    window[0] = 1;  // c, k..
    const std::int64_t outputs = kernel.shape[0] / (groups * batch_groups);
    return build(result(x.shape, kernel.shape), [&](const Shape& at) {
      const std::int64_t group = at[1] / outputs;
      double sum = 0;
      each_index(window, [&](const Shape& k) {
        Shape from = x.shape, weight = k;
        from[0] = at[0] + (batch_groups > 1 ? group * x.shape[0] / batch_groups : 0);
        from[1] = k[1] + (groups > 1 ? group * kernel.shape[1] : 0);
        weight[0] = at[1];
        for (std::size_t d = 0; d < stride.size(); d++) {
          const std::int64_t place = at[d + 2] * stride[d] + k[d + 2] * dilation[d] - padding[d].first;
          if (place < 0 || place % holes[d] != 0 || place / holes[d] >= x.shape[d + 2]) return;
          from[d + 2] = place / holes[d];
        }
        sum += read(x, from) * read(kernel, weight);
      });
      return sum;
    });
  }
};

/// The dimensions of x in another order.
inline HostArray turned(const HostArray& x, const Shape& order) {
  HostArray r;
  for (const std::int64_t d : order) r.shape.push_back(x.shape[static_cast<std::size_t>(d)]);
  r.data = build(r.shape, [&](const Shape& at) {
    Shape from = at;
    for (std::size_t d = 0; d < order.size(); d++) from[static_cast<std::size_t>(order[d])] = at[d];
    return read(x, from);
  });
  return r;
}

}  // namespace shardarray::testing
