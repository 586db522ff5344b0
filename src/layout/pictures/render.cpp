// render_sharding and visualize_sharding: JAX's pictures, and pictures of what JAX does not draw.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/sizes.h"
#include "base/text_width.h"
#include "layout/pictures/arrange.h"
#include "layout/pictures/device_ids.h"
#include "layout/pictures/text.h"
#include "layout/spelling.h"
#include "shardarray/error.h"
#include "shardarray/visualize.h"

namespace shardarray {
namespace {

constexpr int least_width = 20;  // every picture fits into this

// A picture with its caption, to be put beside others.
struct Facet {
  std::vector<std::string> caption, lines;
  std::size_t line_width = 0, width = 0;
};

std::vector<Facet> captioned_facets(const Arrangement& arranged, int width) {
  std::vector<Facet> out;
  for (std::size_t k = 0; k < arranged.facets.size(); k++) {
    const BlockGrid& grid = arranged.facets[k];
    Facet f{{}, grid.lines(), static_cast<std::size_t>(grid.width()), 0};
    if (arranged.blocks.dims.size() > 2)
      f.caption = wrapped_lines(arranged.blocks.facet_text(static_cast<std::int64_t>(k)),
                                static_cast<std::size_t>(width));
    f.width = f.line_width;
    for (const std::string& line : f.caption) f.width = std::max(f.width, text_width(line));
    out.push_back(std::move(f));
  }
  return out;
}

// As many facets per row as fit, separated by two blanks, without trailing blanks.
std::string facets_text(const std::vector<Facet>& facets, int width) {
  std::size_t widest = 0;
  for (const Facet& f : facets) widest = std::max(widest, f.width);
  const std::size_t in_row = std::max<std::size_t>(1, (static_cast<std::size_t>(width) + 2) / (widest + 2));
  std::string out;
  const auto add_lines = [&](std::span<const Facet> row, bool captions) {
    std::size_t high = 0;
    for (const Facet& f : row) high = std::max(high, (captions ? f.caption : f.lines).size());
    for (std::size_t line = 0; line < high; line++) {
      std::size_t pending = 0;  // blanks before the next text
      for (const Facet& f : row) {
        const auto& lines = captions ? f.caption : f.lines;
        const bool has = line < lines.size();
        if (has) out += std::string(pending, ' ') + lines[line], pending = 0;
        pending += widest + 2 - (has ? captions ? text_width(lines[line]) : f.line_width : 0);
      }
      out += "\n";
    }
  };
  for (std::size_t k = 0; k < facets.size(); k += in_row) {
    const std::span<const Facet> row(facets.data() + k, std::min(in_row, facets.size() - k));
    add_lines(row, true);
    add_lines(row, false);
  }
  return out;
}

void check_options(const char* function, const VisualizeOptions& options) {
  constexpr int most = 10'000;
  const auto wrong = [](int width) { return width < 0 || width > most; };
  if (!(options.scale >= 0 && options.scale <= 1000) || wrong(options.min_width) || wrong(options.max_width))
    throw Error(fmt::format(
        "{}: scale {}, min_width {}, max_width {}. The scale is from 0 to 1000, widths are from 0 "
        "to {} columns. Correct the options.",
        function, options.scale, options.min_width, options.max_width, most));
}

std::string picture(const Shape& shape, const Sharding& sharding, const VisualizeOptions& options,
                    bool palette) {
  const char* const function = detail::call_site.function;  // the one the user called
  check_size(function, shape, DType::bool_);
  check_options(function, options);
  const int width = std::max(options.max_width, least_width);
  const Layout& layout = *layout_of(sharding, static_cast<int>(shape.size()), function);
  const Arrangement arranged = arrange_blocks(shape, layout, options, width, palette);
  std::string out = facets_text(captioned_facets(arranged, width), width);
  std::vector<std::string> notes = arranged.notes;
  if (!layout.unreduced().empty() && !arranged.facets.empty())
    notes.push_back(fmt::format("The value is the sum over {}: each of these devices holds a summand.",
                                axis_names(layout.unreduced(), layout.order(), mesh_of(sharding))));
  if (const std::vector<int>& ids = arranged.blocks.empty_ids; !ids.empty())
    notes.push_back(fmt::format("{} {} {} nothing.", upper_case(arranged.blocks.platform), id_runs(ids, ", "),
                                ids.size() == 1 ? "holds" : "hold"));
  if (const auto by_process = devices_by_process(layout.order()->devices()); by_process.size() > 1) {
    constexpr std::size_t most_named = 16;
    std::vector<std::string> each;
    for (const auto& [process, ids] : by_process)
      if (each.size() < most_named)
        each.push_back(fmt::format("Process {} has {} {}.", process, upper_case(arranged.blocks.platform),
                                   id_runs(ids, ", ")));
    if (by_process.size() > most_named)
      each.push_back(fmt::format("{} more processes: sharding_table lists each device's.",
                                 by_process.size() - most_named));
    notes.push_back(fmt::format("{}", fmt::join(each, " ")));
  }
  for (const std::string& note : notes)
    for (const std::string& line : wrapped_lines(note, static_cast<std::size_t>(width))) out += line + "\n";
  return out;
}

}  // namespace

std::string render_sharding(const Shape& shape, const Sharding& sharding, const VisualizeOptions& options,
                            Where w) {
  const Site site(w, "render_sharding");
  return picture(shape, sharding, options, false);
}

void visualize_sharding(const Shape& shape, const Sharding& sharding, const VisualizeOptions& options,
                        Where w) {
  const Site site(w, "visualize_sharding");
  VisualizeOptions chosen = options;
  const Colors shown = chosen.use_color ? Colors::all : terminal_colors();
  if (!chosen.use_color) chosen.use_color = shown != Colors::none;
  if (const int columns = terminal_columns(); columns > 0)
    chosen.max_width = std::min(chosen.max_width, columns);
  print_text(picture(shape, sharding, chosen, shown == Colors::palette));
}

}  // namespace shardarray
