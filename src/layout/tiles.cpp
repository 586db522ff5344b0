// Boxes, tiles, and which devices hold the same one.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/ceil_div.h"
#include "layout/axes.h"
#include "layout/tiles.h"
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

// most_missing() for equal tiles: either every position has the same amount of its target already, or in some dimension the shardings of
// source and target are independent, so that some position has nothing. nullopt if neither is certain.
std::optional<std::int64_t> missing_of_equal_tiles(const std::vector<AxisList>& from, const Layout& to,
                                                   const Shape& shape) {
  std::int64_t wanted = 1, there = 1;
  bool none_there = false;
  for (std::size_t d = 0; d < from.size(); d++) {
    const AxisList &old = from[d], &cut = to.dims()[d];
    const std::int64_t tiles = product(cut), held = product(old);
    if (shape[d] % tiles != 0 || shape[d] % held != 0) return std::nullopt;
    wanted *= shape[d] / tiles;
    const CommonPrefix prefix =
        old.empty() || cut.empty() || old == cut ? CommonPrefix() : common_prefix(old, cut);
    if (prefix.rest_a.empty() || prefix.rest_b.empty()) {
      there *= shape[d] / std::max(tiles, held);
      continue;
    }
    // The first of these is independent, at least down to where the second begins.
    const auto [a, b] =
        std::minmax(prefix.rest_a[0], prefix.rest_b[0], [](SubAxis x, SubAxis y) { return x.pre < y.pre; });
    if (a.pre == b.pre || b.pre % a.pre != 0 || (end_of(a) > b.pre && end_of(a) % b.pre != 0))
      return std::nullopt;
    none_there = true;
  }
  return none_there ? wanted : wanted - there;
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

static std::vector<std::int64_t> tile_indices(const AxisList& dim, int n) {
  std::vector<std::int64_t> index(static_cast<std::size_t>(n), 0);
  for (SubAxis a : dim)
    for (std::size_t p = 0, run = static_cast<std::size_t>(n / (a.pre * a.size)); p < index.size();)
      for (std::int64_t c = 0; c < a.size; c++)
        for (const std::size_t end = p + run; p < end; p++) index[p] = index[p] * a.size + c;
  return index;
}
std::vector<std::int64_t> tile_indices(const Layout& layout, int d) {
  return tile_indices(layout.dims()[static_cast<std::size_t>(d)], layout.order()->size());
}

std::vector<Box> all_tiles(const Layout& layout, const Shape& shape) {
  check_rank("all_tiles", layout, shape);
  std::vector<Box> boxes(static_cast<std::size_t>(layout.order()->size()));
  for (int d = 0; d < layout.rank(); d++) {
    const std::int64_t n = shape[d], tile = ceil_div(n, layout.tiles(d));
    const std::vector<std::int64_t> index = tile_indices(layout, d);
    for (std::size_t p = 0; p < boxes.size(); p++) {
      const std::int64_t lo = std::min(n, index[p] * tile);
      boxes[p].lo.push_back(lo);
      boxes[p].size.push_back(std::min(n, lo + tile) - lo);
    }
  }
  return boxes;
}

static std::vector<std::int64_t> missing_of_each(const std::vector<AxisList>& from, const Layout& to,
                                                 const Shape& shape) {
  const auto positions = static_cast<std::size_t>(to.order()->size());
  std::vector<std::int64_t> wanted(positions, 1), there(positions, 1);
  for (int d = 0; d < to.rank(); d++) {
    const AxisList& old = from[static_cast<std::size_t>(d)];
    const std::int64_t n = shape[d], tile = ceil_div(n, to.tiles(d)), held = ceil_div(n, product(old));
    const std::vector<std::int64_t> index = tile_indices(to, d),
                                    source = tile_indices(old, to.order()->size());
    for (std::size_t p = 0; p < positions; p++) {
      const std::int64_t lo = std::min(n, index[p] * tile), hi = std::min(n, lo + tile);
      const std::int64_t first = std::min(n, source[p] * held), last = std::min(n, first + held);
      wanted[p] *= hi - lo;
      there[p] *= std::max<std::int64_t>(0, std::min(hi, last) - std::max(lo, first));
    }
  }
  for (std::size_t p = 0; p < positions; p++) wanted[p] -= there[p];
  return wanted;
}
std::vector<std::int64_t> missing_of_each(const Layout& from, const Layout& to, const Shape& shape) {
  check_rank("missing_of_each", from, shape);
  check_rank("missing_of_each", to, shape);
  return missing_of_each(from.dims(), to, shape);
}

bool lack_alike(const Layout& from, const Layout& to, const Shape& shape) {
  for (int d = 0; d < to.rank(); d++) {
    if (shape[d] % to.tiles(d) != 0 || shape[d] % from.tiles(d) != 0) return false;
    const CommonPrefix prefix = common_prefix(from.dims()[d], to.dims()[d]);
    if (!prefix.rest_a.empty() && !prefix.rest_b.empty()) return false;
  }
  return true;
}

std::int64_t most_missing(const std::vector<AxisList>& from, const Layout& to, const Shape& shape) {
  check_rank("most_missing", to, shape);
  if (std::ranges::all_of(to.dims(), [](const AxisList& axes) { return axes.empty(); })) {
    std::int64_t least = 1;  // the positions with the last tiles have least
    for (std::size_t d = 0; d < from.size(); d++) {
      const std::int64_t n = shape[d], tiles = product(from[d]), tile = ceil_div(n, tiles);
      least *= n - std::min(n, (tiles - 1) * tile);
    }
    return num_elements(shape) - least;
  }
  if (const auto missing = missing_of_equal_tiles(from, to, shape)) return *missing;
  return std::ranges::max(missing_of_each(from, to, shape));
}

Shape tile_shape(const Layout& layout, const Shape& shape) {
  check_rank("tile_shape", layout, shape);
  Shape out;
  for (int d = 0; d < layout.rank(); d++) out.push_back(ceil_div(shape[d], layout.tiles(d)));
  return out;
}

std::int64_t tile_bytes(const std::vector<AxisList>& dims, const Shape& shape, std::int64_t itemsize) {
  std::int64_t n = 1;
  for (std::size_t d = 0; d < dims.size(); d++) n *= ceil_div(shape[d], product(dims[d]));
  return n * itemsize;
}

Instances instances_of(const Layout& layout, bool share_replicas) {
  const std::vector<Device>& devices = layout.order()->devices();
  const int n = layout.order()->size();
  Instances out;
  std::map<std::tuple<int, int, std::int64_t>, int> known;  // (process, memory, part of the value)
  for (int p = 0; p < n; p++) {
    std::int64_t part = share_replicas ? 0 : p;
    if (share_replicas) {
      // Mixed radix over all sub-axes in use: at most n values.
      for (int d = 0; d < layout.rank(); d++) part = part * layout.tiles(d) + layout.tile_index(d, p);
      for (SubAxis a : layout.unreduced()) part = part * a.size + coordinate(a, p, n);
    }
    const Device& d = devices[static_cast<std::size_t>(p)];
    const auto [it, fresh] = known.emplace(std::tuple(d.process_index, d.memory, part), out.count());
    if (fresh) out.leader.push_back(p);
    out.of_position.push_back(it->second);
  }
  return out;
}

}  // namespace shardarray
