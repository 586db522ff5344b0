#include "layout/pictures/grid.h"

#include <algorithm>
#include <cmath>

namespace shardarray {
namespace {

// A line of text and its width in columns.
struct LabelLine {
  std::string text;
  int columns = 0;
};

// The label in `room` columns: one line if it fits, otherwise wrapped at blanks, with too long words cut by an ellipsis.
std::vector<LabelLine> label_lines(const std::string& label, int room) {
  std::vector<LabelLine> out;
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

// Whether the whole label fits, in at most most_lines lines.
bool fits_whole(const std::string& label, int room, std::size_t most_lines) {
  const std::vector<LabelLine> lines = label_lines(label, room);
  if (lines.empty() || lines.size() > most_lines) return false;
  std::size_t seen = lines.size() - 1;  // blanks replaced by line breaks
  for (const LabelLine& line : lines) seen += line.text.ends_with("…") ? 0 : line.text.size();
  return seen == label.size();
}

std::string blanks(int n) { return std::string(static_cast<std::size_t>(std::max(0, n)), ' '); }

std::string painted(const GridCell& cell, const std::string& text) {
  return cell.style.empty() || text.empty() ? text : cell.style + text + "\x1b[0m";
}

// The lines of a cell, each `width` columns; the label is centred, or left-aligned if it had to be wrapped.
std::vector<std::string> cell_lines(const GridCell& cell, int width) {
  const int room = width - cell.left - cell.right;
  const auto lines = label_lines(cell.label, room);
  std::vector<std::string> out(static_cast<std::size_t>(cell.top), painted(cell, blanks(width)));
  for (const LabelLine& line : lines) {
    const int extra = room - line.columns,
              before = lines.size() == 1 && line.text == cell.label ? extra / 2 : 0;
    out.push_back(painted(cell, blanks(cell.left + before)) + painted(cell, line.text) +
                  painted(cell, blanks(width - cell.left - before - line.columns)));
  }
  out.resize(std::max<std::size_t>(1, out.size() + static_cast<std::size_t>(cell.bottom)),
             painted(cell, blanks(width)));
  return out;
}

std::string ruled(const BlockGrid& g, const char* left, const char* middle, const char* right) {
  std::string out = left;
  for (std::size_t c = 0; c < g.columns; c++) {
    if (c > 0) out += middle;
    for (int k = 0; k < g.widths[c]; k++) out += "─";
  }
  return out + right;
}

}  // namespace

std::pair<int, int> blank_halves(int room, int more) {
  const int first = room >= 0 ? room / 2 : -((1 - room) / 2);
  return {std::max(0, first + more), std::max(0, room - first + more)};
}

void BlockGrid::fit(int width) {
  const int budget = std::max(0, color ? width : width - static_cast<int>(columns) - 1);
  widths.assign(columns, 0);
  for (std::size_t k = 0; k < cells.size(); k++) {
    const GridCell& cell = cells[k];
    int& w = widths[k % columns];
    w = std::min(budget, std::max(w, cell.left + static_cast<int>(cell.label.size()) + cell.right));
  }
  while (true) {
    int excess = -budget, widest = 0, next = 0;
    for (int w : widths) excess += w, widest = std::max(widest, w);
    if (excess <= 0) return;
    for (int w : widths)
      if (w != widest) next = std::max(next, w);
    auto left = std::count(widths.begin(), widths.end(), widest);
    const int most = std::min(excess, widest - next);
    for (int& w : widths) {
      if (w != widest) continue;
      const int share =
          static_cast<int>(std::nearbyint(static_cast<double>(excess) / static_cast<double>(left--)));
      const int taken = std::min(most, share);
      w -= taken;
      excess -= taken;
    }
  }
}

bool BlockGrid::make_room(std::size_t most_lines) {
  bool whole = true;
  for (std::size_t k = 0; k < cells.size(); k++) {
    GridCell& cell = cells[k];
    const int width_of_column = widths[k % columns];
    if (fits_whole(cell.label, width_of_column - cell.left - cell.right, most_lines)) continue;
    cell.left = cell.right = 0;
    whole &= fits_whole(cell.label, width_of_column, most_lines);
  }
  return whole;
}

int BlockGrid::width() const {
  int out = color ? 0 : static_cast<int>(columns) + 1;
  for (int w : widths) out += w;
  return out;
}

std::vector<std::string> BlockGrid::lines() const {
  const std::string bar = color ? "" : "│";
  std::vector<std::string> out;
  if (!color) out.push_back(ruled(*this, "┌", "┬", "┐"));
  for (std::size_t r = 0; r < rows; r++) {
    if (r > 0 && !color) out.push_back(ruled(*this, "├", "┼", "┤"));
    std::vector<std::vector<std::string>> row;
    std::size_t height = 0;
    for (std::size_t c = 0; c < columns; c++) {
      row.push_back(cell_lines(cells[r * columns + c], widths[c]));
      height = std::max(height, row.back().size());
    }
    for (std::size_t line = 0; line < height; line++) {
      std::string text = bar;
      for (std::size_t c = 0; c < columns; c++)
        text +=
            (line < row[c].size() ? row[c][line] : painted(cells[r * columns + c], blanks(widths[c]))) + bar;
      out.push_back(std::move(text));
    }
  }
  if (!color) out.push_back(ruled(*this, "└", "┴", "┘"));
  return out;
}

}  // namespace shardarray
