// What tests of layouts share: the golden rows' mesh, random layouts.
#pragma once
#include <random>
#include <utility>
#include <vector>

#include "layout/layout.h"
#include "layout/spelling.h"

namespace shardarray::testing::layouts {

using Random = std::mt19937;

inline int pick(Random& random, int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(random); }

inline std::vector<Device> cpu_devices(int n) {
  std::vector<Device> out;
  for (int k = 0; k < n; k++) out.push_back(Device{k});
  return out;
}
inline const DeviceOrder* order_of(int n) { return DeviceOrder::of(cpu_devices(n)); }

/// x = 4, y = 2.
inline const Mesh& golden_mesh() {
  static const Mesh mesh({{4, 2}, cpu_devices(8)}, {"x", "y"});
  return mesh;
}
inline const Layout* on_mesh(PartitionSpec spec, int rank) {
  return layout_of(NamedSharding(golden_mesh(), std::move(spec)), rank);
}
/// Its axes as sub-axes.
inline constexpr SubAxis x{1, 4}, y{4, 2};
/// The same with partial sums over some of them.
inline const Layout* partial(PartitionSpec spec, int rank, AxisList unreduced) {
  return Layout::of(on_mesh(spec, rank)->order(), on_mesh(spec, rank)->dims(), std::move(unreduced),
                    Reducer::sum);
}

/// Sub-axes of a random factorisation, dealt to the dimensions or to nobody.
inline const Layout* random_layout(Random& random, const DeviceOrder* order, int rank) {
  std::vector<AxisList> dims(rank);
  for (std::int32_t pre = 1, n = order->size(); pre < n;) {
    std::vector<std::int32_t> sizes;
    for (std::int32_t q = 2; q <= n / pre; q++)
      if (n / pre % q == 0) sizes.push_back(q);
    const SubAxis a{pre, sizes[pick(random, 0, static_cast<int>(sizes.size()) - 1)]};
    const int d = pick(random, 0, rank);
    if (d < rank) dims[d].insert(dims[d].begin() + pick(random, 0, static_cast<int>(dims[d].size())), a);
    pre *= a.size;
  }
  return Layout::of(order, dims);
}

/// Now and then fewer elements than tiles, so that tails are short or empty; or none at all.
inline Shape random_shape(Random& random, int rank) {
  Shape shape;
  for (int d = 0; d < rank; d++) shape.push_back(pick(random, pick(random, 0, 1), pick(random, 1, 40)));
  return shape;
}

/// tile_of every position.
inline std::vector<Box> tiles_of(const Layout& l, const Shape& shape) {
  std::vector<Box> out;
  for (int p = 0; p < l.order()->size(); p++) out.push_back(tile_of(l, shape, p));
  return out;
}

}  // namespace shardarray::testing::layouts
