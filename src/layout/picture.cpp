// Pictures of shardings: JAX's visualize_sharding, character by character.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/ceil_div.h"
#include "base/sizes.h"
#include "layout/spelling.h"
#include "shardarray/error.h"
#include "shardarray/visualize.h"

namespace shardarray {
namespace {

struct Cell {
  std::string label;
  int left = 0, right = 0, top = 0, bottom = 0;  ///< blanks around the label
  std::string style;                             ///< the escape sequence of its colours
};
struct Picture {
  std::size_t rows = 0, columns = 0;
  std::vector<Cell> cells;  ///< row-major
  std::vector<int> widths;  ///< of the columns
  bool color = false;
  const Cell& at(std::size_t r, std::size_t c) const { return cells[r * columns + c]; }
};

Rgb tab20b(double x) {
  static constexpr std::uint32_t colors[] = {
      0x393b79, 0x5254a3, 0x6b6ecf, 0x9c9ede, 0x637939, 0x8ca252, 0xb5cf6b, 0xcedb9c, 0x8c6d31, 0xbd9e39,
      0xe7ba52, 0xe7cb94, 0x843c39, 0xad494a, 0xd6616b, 0xe7969c, 0x7b4173, 0xa55194, 0xce6dbd, 0xde9ed6};
  const std::uint32_t c = colors[std::clamp(static_cast<int>(x * 20), 0, 19)];
  return {(c >> 16) / 255.0, (c >> 8 & 255) / 255.0, (c & 255) / 255.0};
}

// Background as given, text black or white, whichever is easier to read.
std::string style_of(const Rgb& rgb) {
  const int r = static_cast<int>(rgb[0] * 255), g = static_cast<int>(rgb[1] * 255),
            b = static_cast<int>(rgb[2] * 255);
  const int text = r * 0.299 + g * 0.587 + b * 0.114 > 186 ? 0 : 255;
  return fmt::format("\x1b[38;2;{0};{0};{0};48;2;{1};{2};{3}m", text, r, g, b);
}

// The colours of n blocks: n evenly spaced values, visited in steps of about a half so that neighbours
// differ.
void color_cells(Picture& p, const VisualizeOptions& options) {
  const std::size_t n = p.cells.size();
  std::size_t at = 0;
  for (Cell& cell : p.cells) {
    const double x = n == 1 ? 0.0 : static_cast<double>(at) / static_cast<double>(n - 1);
    cell.style = style_of(options.color_map ? options.color_map(x) : tab20b(x));
    at = (at + n / 2 + (n % 2 == 0)) % n;
  }
}

// The labels: `CPU 0,2`, by tile.
std::vector<std::string> tile_labels(const Layout& layout, std::size_t rows, std::size_t columns) {
  std::vector<std::vector<int>> ids(rows * columns);
  const auto& devices = layout.order()->devices();
  for (int p = 0; p < layout.order()->size(); p++) {
    const std::int64_t row = layout.rank() == 2 ? layout.tile_index(0, p) : 0;
    ids[row * static_cast<std::int64_t>(columns) + layout.tile_index(layout.rank() - 1, p)].push_back(
        devices[p].id);
  }
  std::string platform = devices[0].platform;
  for (char& c : platform)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
  std::vector<std::string> out;
  for (auto& tile : ids) {
    std::sort(tile.begin(), tile.end());
    out.push_back(fmt::format("{} {}", platform, fmt::join(tile, ",")));
  }
  return out;
}

// The extent of tile `index` of dimension d as a fraction of the whole.
double fraction(const Layout& layout, const Shape& shape, int d, std::int64_t index) {
  if (shape[d] == 0) return 1.0 / static_cast<double>(layout.tiles(d));
  const std::int64_t tile = ceil_div(shape[d], layout.tiles(d));
  const std::int64_t size = std::min(shape[d], (index + 1) * tile) - std::min(shape[d], index * tile);
  return static_cast<double>(size) / static_cast<double>(shape[d]);
}

// `room` blanks as two halves, the second one larger; `more` is added before what is negative becomes 0.
std::pair<int, int> halves(int room, int more) {
  const int first = room >= 0 ? room / 2 : -((1 - room) / 2);
  return {std::max(0, first + more), std::max(0, room - first + more)};
}

Picture make_picture(const Shape& shape, const Layout& layout, const VisualizeOptions& options, bool color) {
  const bool flat = layout.rank() == 1;
  Picture p;
  p.color = color;
  p.rows = flat ? 1 : static_cast<std::size_t>(layout.tiles(0));
  p.columns = static_cast<std::size_t>(layout.tiles(layout.rank() - 1));
  const int height = static_cast<int>(10 * options.scale);
  const double aspect =
      shape[0] == 0 ? 1.0 : static_cast<double>(flat ? 1 : shape[1]) / static_cast<double>(shape[0]);
  // A value much wider than high may be wider than an int: blocks end at max_width anyway.
  const double width = std::floor(height * aspect);
  const auto labels = tile_labels(layout, p.rows, p.columns);
  for (std::size_t k = 0; k < labels.size(); k++) {
    Cell cell;
    cell.label = labels[k];
    const double part = fraction(layout, shape, layout.rank() - 1, static_cast<std::int64_t>(k % p.columns));
    const double wanted = std::clamp<double>(std::floor(part * width * 2.5), options.min_width,
                                             std::max(options.min_width, options.max_width));
    const int columns = std::min(static_cast<int>(wanted), options.max_width);
    const int lines =
        flat
            ? 1
            : static_cast<int>(fraction(layout, shape, 0, static_cast<std::int64_t>(k / p.columns)) * height);
    std::tie(cell.left, cell.right) = halves(columns - static_cast<int>(cell.label.size()) - 2, color);
    std::tie(cell.top, cell.bottom) = halves(lines - 2, color);
    p.cells.push_back(std::move(cell));
  }
  if (color) color_cells(p, options);
  return p;
}

// The widest columns give way, evenly, until `budget` columns suffice.
void fit_widths(Picture& p, int budget) {
  budget = std::max(budget, 0);
  p.widths.assign(p.columns, 0);
  for (std::size_t k = 0; k < p.cells.size(); k++) {
    const Cell& cell = p.cells[k];
    int& w = p.widths[k % p.columns];
    w = std::min(budget, std::max(w, cell.left + static_cast<int>(cell.label.size()) + cell.right));
  }
  while (true) {
    int excess = -budget, widest = 0, next = 0;
    for (int w : p.widths) excess += w, widest = std::max(widest, w);
    if (excess <= 0) return;
    for (int w : p.widths)
      if (w != widest) next = std::max(next, w);
    auto left = std::count(p.widths.begin(), p.widths.end(), widest);
    const int most = std::min(excess, widest - next);
    for (int& w : p.widths) {
      if (w != widest) continue;
      const int share =
          static_cast<int>(std::nearbyint(static_cast<double>(excess) / static_cast<double>(left--)));
      const int taken = std::min(most, share);
      w -= taken;
      excess -= taken;
    }
  }
}

// A line of text and the columns it takes.
struct Line {
  std::string text;
  int columns = 0;
};

// The label in `room` columns: one line if it fits, else broken at blanks, words that are too long cut with
// an ellipsis.
std::vector<Line> label_lines(const std::string& label, int room) {
  std::vector<Line> out;
  for (std::size_t at = 0; room > 0 && at < label.size();) {
    const std::size_t end = std::min(label.find(' ', at), label.size());
    std::string word = label.substr(at, end - at);
    int columns = static_cast<int>(word.size());
    if (columns > room) {
      word = word.substr(0, static_cast<std::size_t>(room - 1)) + "…";
      columns = room;
    }
    if (!out.empty() && out.back().columns + 1 + columns <= room) {
      out.back().text += " " + word;
      out.back().columns += 1 + columns;
    } else {
      out.push_back({word, columns});
    }
    at = end + 1;
  }
  return out;
}

std::string blanks(int n) { return std::string(static_cast<std::size_t>(std::max(0, n)), ' '); }

std::string painted(const Cell& cell, const std::string& text) {
  return cell.style.empty() || text.empty() ? text : cell.style + text + "\x1b[0m";
}

// The lines of a cell, each `width` columns; the label centred, when it had to be broken at the left.
std::vector<std::string> cell_lines(const Cell& cell, int width) {
  const int room = width - cell.left - cell.right;
  const auto lines = label_lines(cell.label, room);
  std::vector<std::string> out(static_cast<std::size_t>(cell.top), painted(cell, blanks(width)));
  for (const Line& line : lines) {
    const int extra = room - line.columns,
              before = lines.size() == 1 && line.text == cell.label ? extra / 2 : 0;
    out.push_back(painted(cell, blanks(cell.left + before)) + painted(cell, line.text) +
                  painted(cell, blanks(width - cell.left - before - line.columns)));
  }
  out.resize(std::max<std::size_t>(1, out.size() + static_cast<std::size_t>(cell.bottom)),
             painted(cell, blanks(width)));
  return out;
}

std::string rule(const Picture& p, const char* left, const char* middle, const char* right) {
  std::string out = left;
  for (std::size_t c = 0; c < p.columns; c++) {
    if (c > 0) out += middle;
    for (int k = 0; k < p.widths[c]; k++) out += "─";
  }
  return out + right + "\n";
}

std::string draw(const Picture& p) {
  const std::string bar = p.color ? "" : "│";
  std::string out = p.color ? "" : rule(p, "┌", "┬", "┐");
  for (std::size_t r = 0; r < p.rows; r++) {
    if (r > 0 && !p.color) out += rule(p, "├", "┼", "┤");
    std::vector<std::vector<std::string>> row;
    std::size_t height = 0;
    for (std::size_t c = 0; c < p.columns; c++) {
      row.push_back(cell_lines(p.at(r, c), p.widths[c]));
      height = std::max(height, row.back().size());
    }
    for (std::size_t line = 0; line < height; line++) {
      out += bar;
      for (std::size_t c = 0; c < p.columns; c++)
        out += (line < row[c].size() ? row[c][line] : painted(p.at(r, c), blanks(p.widths[c]))) + bar;
      out += "\n";
    }
  }
  return p.color ? out : out + rule(p, "└", "┴", "┘");
}

bool is_color_terminal() {
  const char *term = std::getenv("TERM"), *no_color = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) && !no_color && term && std::strcmp(term, "dumb") != 0;
}

}  // namespace

std::string render_sharding(const Shape& shape, const Sharding& sharding, const VisualizeOptions& options,
                            Where w) {
  const Site site(w);
  if (shape.size() != 1 && shape.size() != 2)
    throw ShapeError(
        fmt::format("render_sharding: shape {} has rank {}. Pictures show values of rank 1 and 2. Use "
                    "sharding_table for others.",
                    to_string(shape), shape.size()));
  check_size("render_sharding", shape, DType::bool_);
  constexpr int most = 10'000;
  const auto wrong = [](int width) { return width < 0 || width > most; };
  if (!(options.scale >= 0 && options.scale <= 1000) || wrong(options.min_width) || wrong(options.max_width))
    throw Error(
        fmt::format("render_sharding: scale {}, min_width {}, max_width {}. The scale is from 0 to 1000, "
                    "widths are from 0 to {} columns. Correct the options.",
                    options.scale, options.min_width, options.max_width, most));
  const bool color = options.use_color.value_or(false);
  Picture p = make_picture(shape, *layout_of(sharding, static_cast<int>(shape.size())), options, color);
  fit_widths(p, color ? options.max_width : options.max_width - static_cast<int>(p.columns) - 1);
  return draw(p);
}

void visualize_sharding(const Shape& shape, const Sharding& sharding, const VisualizeOptions& options,
                        Where w) {
  const Site site(w);
  VisualizeOptions chosen = options;
  if (!chosen.use_color) chosen.use_color = is_color_terminal();
  const std::string text = render_sharding(shape, sharding, chosen);
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

std::string sharding_table(const Shape& shape, const Sharding& sharding, Where w) {
  const Site site(w);
  std::vector<std::array<std::string, 4>> rows = {{"device", "index", "shard shape", "replica"}};
  const auto replicas = sharding.replica_ids(shape);
  for (const auto& [device, index] : sharding.devices_indices_map(shape))
    rows.push_back({to_string(device), to_string(index), to_string(sharding.shard_shape(shape, device)),
                    std::to_string(replicas[rows.size() - 1])});
  std::array<std::size_t, 3> widths{};
  for (const auto& row : rows)
    for (std::size_t c = 0; c < widths.size(); c++) widths[c] = std::max(widths[c], row[c].size());
  std::string out;
  for (const auto& row : rows)
    out += fmt::format("{:<{}}  {:<{}}  {:<{}}  {}\n", row[0], widths[0], row[1], widths[1], row[2],
                       widths[2], row[3]);
  return out;
}

}  // namespace shardarray
