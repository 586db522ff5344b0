#include "layout/pictures/blocks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "layout/pictures/device_ids.h"
#include "layout/tiles.h"

namespace shardarray {
namespace {

// Pictures with more rows are folded to fit a screen.
constexpr std::int64_t most_rows = 40, folded_rows = 20, most_facets = 16;

// Tiles are ceil-sized, so the last ones may be empty.
std::int64_t filled_tiles(std::int64_t size, std::int64_t tiles) {
  return size == 0 ? 0 : ceil_div(size, ceil_div(size, tiles));
}

// Folds leading dimensions, the one with most blocks first, until there are few facets.
void fold_facets(std::span<BlockDim> leading) {
  const auto by_count = [](const BlockDim& a, const BlockDim& b) { return a.count() < b.count(); };
  while (true) {
    std::int64_t facets = 1;
    for (const BlockDim& d : leading) facets *= d.count();
    if (facets <= most_facets) return;
    std::max_element(leading.begin(), leading.end(), by_count)->fold_more();
  }
}

}  // namespace

IndexRange BlockDim::range(std::int64_t block) const {
  if (tiles == 1) return {};
  const std::int64_t tile = ceil_div(size, tiles);
  const auto start_of = [&](std::int64_t t) { return std::min(size, std::min(t, tiles) * tile); };
  return {false, start_of(block * fold), start_of((block + 1) * fold)};
}

double BlockDim::share(std::int64_t block) const {
  const IndexRange held = range(block);
  if (held.whole) return 1;
  return static_cast<double>(held.stop - held.start) / static_cast<double>(size);
}

void BlockDim::fold_more() {
  const std::int64_t old = fold;
  fold = std::min(2 * old, tiles);
  for (std::int64_t k = old + 1; k < fold; k++)
    if (tiles % k == 0) fold = k;
}

std::string range_text(const IndexRange& range) {
  return range.whole ? ":" : fmt::format("{}:{}", range.start, range.stop);
}

std::string Blocks::facet_text(std::int64_t k) const {
  std::vector<std::string> ranges(dims.size(), ":");
  for (std::size_t d = dims.size() - 2; d-- > 0; k /= dims[d].count())
    ranges[d] = range_text(dims[d].range(k % dims[d].count()));
  return fmt::format("[{}]", fmt::join(ranges, ", "));
}

std::string Blocks::fold_text() const {
  std::vector<std::int64_t> folds;
  bool folded = false, even = true;
  for (const BlockDim& d : dims) {
    folds.push_back(d.fold);
    folded |= d.fold > 1;
    even &= d.tiles % d.fold == 0;
  }
  return folded ? fmt::format("{}{}", even ? "" : "up to ", fmt::join(folds, " x ")) : "";
}

std::vector<BlockDim> block_dims(const Shape& shape, const Layout& layout) {
  std::vector<BlockDim> dims;
  for (std::size_t d = shape.size(); d < 2; d++) dims.emplace_back();
  for (int d = 0; d < layout.rank(); d++) dims.push_back({shape[d], filled_tiles(shape[d], layout.tiles(d))});
  BlockDim& rows = dims[dims.size() - 2];
  if (rows.tiles > most_rows)
    while (rows.count() > folded_rows) rows.fold_more();
  fold_facets({dims.data(), dims.size() - 2});
  return dims;
}

Blocks make_blocks(const Layout& layout, std::vector<BlockDim> dims) {
  const auto& devices = layout.order()->devices();
  Blocks out;
  out.platform = devices[0].platform;
  out.dims = std::move(dims);
  out.is_flat = layout.rank() < 2;
  std::int64_t count = 1;
  std::vector<std::int64_t> block_of(devices.size(), 0);
  std::vector<bool> is_empty(devices.size(), false);
  const std::size_t added = out.dims.size() - static_cast<std::size_t>(layout.rank());
  for (std::size_t d = added; d < out.dims.size(); d++) {
    const std::vector<std::int64_t> tile = tile_indices(layout, static_cast<int>(d - added));
    for (std::size_t p = 0; p < devices.size(); p++) {
      block_of[p] = block_of[p] * out.dims[d].count() + tile[p] / out.dims[d].fold;
      if (tile[p] >= out.dims[d].tiles) is_empty[p] = true;
    }
    count *= out.dims[d].count();
  }
  out.ids.resize(static_cast<std::size_t>(count));
  for (std::size_t p = 0; p < devices.size(); p++)
    (is_empty[p] ? out.empty_ids : out.ids[block_of[p]]).push_back(devices[p].id);
  for (std::vector<int>& ids : out.ids) std::sort(ids.begin(), ids.end());
  std::sort(out.empty_ids.begin(), out.empty_ids.end());
  return out;
}

}  // namespace shardarray
