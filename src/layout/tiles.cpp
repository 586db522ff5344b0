// Boxes, tiles and which devices hold the same one.
#include <fmt/format.h>

#include <unordered_map>

#include "base/ceil_div.h"
#include "layout/layout.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

void check_rank(const char* function, const Layout& layout, const Shape& shape) {
  if (shape.size() != layout.dims().size())
    throw InternalError(
        fmt::format("{}: layout {} and shape {} differ in rank. A layout is made for one rank. Please "
                    "report this.",
                    function, layout.to_string(), to_string(shape)));
}

}  // namespace

std::int64_t Box::elements() const { return num_elements(size); }

Box intersect(const Box& a, const Box& b) {
  Box out;
  for (std::size_t d = 0; d < a.lo.size(); d++) {
    const std::int64_t lo = std::max(a.lo[d], b.lo[d]);
    out.lo.push_back(lo);
    out.size.push_back(std::max<std::int64_t>(0, std::min(a.lo[d] + a.size[d], b.lo[d] + b.size[d]) - lo));
  }
  return out;
}

Box whole_box(const Shape& shape) { return {Shape::filled(shape.size(), 0), shape}; }

Box tile_of(const Layout& layout, const Shape& shape, int p) {
  check_rank("tile_of", layout, shape);
  Box box;
  for (int d = 0; d < layout.rank(); d++) {
    const std::int64_t n = shape[d], tile = ceil_div(n, layout.tiles(d));
    const std::int64_t lo = std::min(n, layout.tile_index(d, p) * tile);
    box.lo.push_back(lo);
    box.size.push_back(std::min(n, lo + tile) - lo);
  }
  return box;
}

Shape tile_shape(const Layout& layout, const Shape& shape) {
  check_rank("tile_shape", layout, shape);
  Shape out;
  for (int d = 0; d < layout.rank(); d++) out.push_back(ceil_div(shape[d], layout.tiles(d)));
  return out;
}

Instances instances_of(const Layout& layout, bool share_replicas) {
  const int n = layout.order()->size();
  Instances out;
  std::unordered_map<std::int64_t, int> known;
  for (int p = 0; p < n; p++) {
    std::int64_t key = share_replicas ? 0 : p;
    if (share_replicas) {
      // Mixed radix over all sub-axes in use: at most n values.
      for (int d = 0; d < layout.rank(); d++) key = key * layout.tiles(d) + layout.tile_index(d, p);
      for (SubAxis a : layout.unreduced()) key = key * a.size + coordinate(a, p, n);
    }
    const auto [it, fresh] = known.emplace(key, out.count());
    if (fresh) out.leader.push_back(p);
    out.of_position.push_back(it->second);
  }
  return out;
}

}  // namespace shardarray
