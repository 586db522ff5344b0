#include "layout/pictures/arrange.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

#include "layout/pictures/colors.h"
#include "layout/pictures/device_ids.h"

namespace shardarray {
namespace {

// The label of a block, most informative form first. g++ 12 warns that scoped enumerators shadow globals of the same name.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class LabelForm {
  listed,   ///< CPU 0,1,2,3; runs for more than 8 devices
  runs,     ///< CPU 0-3
  bare,     ///< 0-3,8-11
  broken,   ///< the same on several lines
  lettered  ///< A
};
#pragma GCC diagnostic pop

constexpr std::size_t most_listed = 8;     // devices
constexpr std::size_t most_lettered = 40;  // blocks
constexpr std::size_t most_jax = 40;       // blocks whose labels may wrap as in JAX
constexpr std::size_t most_label_lines = 6;

// A, B, ..., Z, AA, AB, ...: like spreadsheet columns.
std::string letters(std::size_t k) {
  std::string out;
  for (k++; k > 0; k = (k - 1) / 26) out.insert(out.begin(), static_cast<char>('A' + (k - 1) % 26));
  return out;
}

std::string block_label(const Blocks& blocks, std::size_t block, LabelForm form) {
  const std::vector<int>& ids = blocks.ids[block];
  if (form == LabelForm::lettered) return letters(block);
  if (form == LabelForm::broken) return id_runs(ids, ", ");
  if (form == LabelForm::bare) return id_runs(ids);
  const bool listed = form == LabelForm::listed && ids.size() <= most_listed;
  return upper_case(blocks.platform) + " " + (listed ? fmt::format("{}", fmt::join(ids, ",")) : id_runs(ids));
}

// Grids of blocks by JAX's rules: 10 lines high, as wide as the shape requires. Facets share that area.
class GridMaker {
 public:
  GridMaker(const Blocks& blocks, const VisualizeOptions& options, int width)
      : blocks_(blocks), options_(options), width_(width) {
    height_ = static_cast<int>(10 * options.scale / std::sqrt(static_cast<double>(blocks.facets())));
    if (blocks.facets() > 1) height_ -= height_ % 2;  // even, so that labels can be centred
    const double down = static_cast<double>(blocks.is_flat ? blocks.columns().size : blocks.rows().size);
    const double across = blocks.is_flat ? 1 : static_cast<double>(blocks.columns().size);
    // May exceed an int for very wide values: cells are clamped to the width anyway.
    across_ = std::floor(height_ * (across / down));
  }

  BlockGrid facet(std::int64_t k, LabelForm form) const {
    BlockGrid grid;
    grid.rows = static_cast<std::size_t>(blocks_.rows().count());
    grid.columns = static_cast<std::size_t>(blocks_.columns().count());
    grid.color = options_.use_color.value_or(false);
    const std::int64_t first = k * blocks_.per_facet();
    for (std::int64_t b = 0; b < blocks_.per_facet(); b++)
      grid.cells.push_back(
          cell(b, block_label(blocks_, static_cast<std::size_t>(first + b), form), grid.color));
    grid.fit(width_);
    return grid;
  }

 private:
  GridCell cell(std::int64_t block, std::string label, bool color) const {
    GridCell out;
    const std::int64_t columns = blocks_.columns().count();
    const double part = blocks_.columns().share(block % columns);
    const int wide = static_cast<int>(
        std::clamp<double>(std::floor(part * across_ * 2.5), std::min(options_.min_width, width_), width_));
    const int high = blocks_.is_flat ? 1 : static_cast<int>(blocks_.rows().share(block / columns) * height_);
    std::tie(out.left, out.right) = blank_halves(wide - static_cast<int>(label.size()) - 2, color);
    std::tie(out.top, out.bottom) = blank_halves(high - 2, color);
    out.label = std::move(label);
    return out;
  }

  const Blocks& blocks_;
  const VisualizeOptions& options_;
  int width_, height_;
  double across_;
};

// All facets with labels of one form; nullopt if a label does not fit.
std::optional<std::vector<BlockGrid>> grids_of(const Blocks& blocks, LabelForm form, std::size_t most_lines,
                                               const VisualizeOptions& options, int width) {
  const GridMaker maker(blocks, options, width);
  std::vector<BlockGrid> out;
  for (std::int64_t k = 0; k < blocks.facets(); k++) {
    out.push_back(maker.facet(k, form));
    if (!out.back().make_room(most_lines) || out.back().width() > width) return std::nullopt;
  }
  return out;
}

std::vector<std::string> notes_of(const Blocks& blocks, LabelForm form) {
  std::vector<std::string> notes;
  const std::string platform = upper_case(blocks.platform);
  if (form == LabelForm::lettered)
    for (std::size_t k = 0; k < blocks.ids.size(); k++)
      notes.push_back(fmt::format("{}: {} {}", letters(k), platform, id_runs(blocks.ids[k], ", ")));
  if (form == LabelForm::bare || form == LabelForm::broken)
    notes.push_back(fmt::format("Numbers are ids of {} devices.", platform));
  if (const std::string fold = blocks.fold_text(); !fold.empty())
    notes.push_back(fmt::format("A block is {} tiles; sharding_table lists each.", fold));
  return notes;
}

// The blocks arranged with labels of one form; nullopt if they do not fit.
std::optional<Arrangement> arranged(const Blocks& blocks, LabelForm form, std::size_t most_lines,
                                    const VisualizeOptions& options, int width) {
  auto grids = grids_of(blocks, form, most_lines, options, width);
  if (!grids) return std::nullopt;
  return Arrangement{blocks, std::move(*grids), notes_of(blocks, form)};
}

// Uses the first label form that can name all devices.
std::optional<Arrangement> named_blocks(const Blocks& blocks, const VisualizeOptions& options, int width) {
  using enum LabelForm;
  struct Attempt {
    LabelForm form;
    std::size_t most_lines;
  };
  std::vector<Attempt> attempts = {{runs, 1}, {bare, 1}, {broken, most_label_lines}};
  if (blocks.fold_text().empty())
    attempts.insert(attempts.begin(), {listed, blocks.ids.size() <= most_jax ? most_label_lines : 1});
  for (const Attempt& a : attempts)
    if (auto found = arranged(blocks, a.form, a.most_lines, options, width)) return found;
  return std::nullopt;
}

// The finest blocks whose devices can be named; if even whole rows of blocks have too many devices, letters.
Arrangement finest(const Layout& layout, const std::vector<BlockDim>& start, const VisualizeOptions& options,
                   int width) {
  for (std::vector<BlockDim> dims = start;; dims.back().fold_more()) {
    const Blocks blocks = make_blocks(layout, dims);
    if (auto found = named_blocks(blocks, options, width)) return *found;
    if (blocks.columns().count() == 1) break;
  }
  for (std::vector<BlockDim> dims = start;;) {
    const Blocks blocks = make_blocks(layout, dims);
    if (blocks.ids.size() <= most_lettered)
      if (auto found = arranged(blocks, LabelForm::lettered, 1, options, width)) return *found;
    std::find_if(dims.rbegin(), dims.rend(), [](const BlockDim& d) { return d.count() > 1; })->fold_more();
  }
}

}  // namespace

Arrangement arrange_blocks(const Shape& shape, const Layout& layout, const VisualizeOptions& options,
                           int width, bool palette) {
  const std::vector<BlockDim> dims = block_dims(shape, layout);
  if (Blocks all = make_blocks(layout, dims); all.ids.empty()) return {std::move(all), {}, {}};
  Arrangement out = finest(layout, dims, options, width);
  if (!options.use_color.value_or(false)) return out;
  const std::vector<std::string> styles = block_styles(out.blocks.ids.size(), options.color_map, palette);
  std::size_t next = 0;
  for (BlockGrid& grid : out.facets)
    for (GridCell& cell : grid.cells) cell.style = styles[next++];
  return out;
}

}  // namespace shardarray
