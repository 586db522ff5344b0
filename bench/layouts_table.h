// A table of layouts, for the terminal and in Markdown.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "layouts_columns.h"

namespace bench {

/// The rows that are to be shown, each with its rank, its marks (`*`: the first, `a`: what the library picks) and the columns.
class LayoutTable {
 public:
  explicit LayoutTable(const LayoutResults& x)
      : x_(x), columns_(columns_named(x.o.columns.empty() ? usual_columns(x) : x.o.columns)) {
    const std::size_t shown =
        x.o.top > 0 ? std::min(x.rows.size(), static_cast<std::size_t>(x.o.top)) : x.rows.size();
    lines_.push_back({"#", ""});
    for (const LayoutColumn& c : columns_) lines_[0].emplace_back(c.heading);
    for (std::size_t k = 0; k < shown; k++) {
      const LayoutRow& r = x.rows[k];
      lines_.push_back({std::to_string(k + 1), fmt::format("{}{}", k == 0 ? "*" : "", r.picked ? "a" : "")});
      for (const LayoutColumn& c : columns_) lines_.back().push_back(c.text(x, r));
    }
  }

  /// No wider than 112 letters where that can be reached by shortening what moves.
  std::string text() const {
    std::vector<std::vector<std::string>> lines = lines_;
    shorten(lines);
    std::vector<std::size_t> widths;
    for (std::size_t c = 0; c < lines[0].size(); c++) widths.push_back(width(lines, c));
    std::string text;
    for (const std::vector<std::string>& l : lines) {
      for (std::size_t c = 0; c < l.size(); c++) {
        if (c > 1) text += ' ';
        text += right(c) ? fmt::format("{:>{}}", l[c], widths[c]) : fmt::format("{:<{}}", l[c], widths[c]);
      }
      text.erase(text.find_last_not_of(' ') + 1);
      text += '\n';
    }
    if (lines.size() <= x_.rows.size())
      text += fmt::format("... and {} slower ones\n", x_.rows.size() + 1 - lines.size());
    if (x_.not_measured > 0)
      text += fmt::format("... and {} that are predicted to be slower were not measured\n", x_.not_measured);
    return text;
  }
  std::string markdown() const {
    std::string text;
    for (const std::vector<std::string>& l : lines_) {
      text += fmt::format("| {} |\n", fmt::join(l, " | "));
      if (&l == &lines_[0])
        for (std::size_t c = 0; c < l.size(); c++)
          text += fmt::format("|{}{}", right(c) ? "-:" : "--", c + 1 == l.size() ? "|\n" : "");
    }
    return text;
  }

 private:
  static constexpr std::size_t kWidth = 112, kLeast = 11;

  bool right(std::size_t column) const { return column == 0 || (column > 1 && columns_[column - 2].right); }
  static std::size_t width(const std::vector<std::vector<std::string>>& lines, std::size_t column) {
    std::size_t most = column == 1 ? 2 : 0;
    for (const std::vector<std::string>& l : lines) most = std::max(most, l[column].size());
    return most;
  }
  void shorten(std::vector<std::vector<std::string>>& lines) const {
    for (std::size_t c = 0; c < columns_.size(); c++) {
      if (columns_[c].heading != std::string_view("collectives")) continue;
      std::size_t others = 0;
      for (std::size_t k = 0; k < lines[0].size(); k++) others += k == c + 2 ? 1 : width(lines, k) + 1;
      const std::size_t room = kWidth > others + kLeast ? kWidth - others : kLeast;
      for (std::size_t k = 1; k < lines.size(); k++) {
        std::string& text = lines[k][c + 2];
        if (text.size() > room) text = x_.rows[k - 1].short_collectives;
        if (text.size() > room) text = text.substr(0, room - 3) + "...";
      }
    }
  }

  const LayoutResults& x_;
  std::vector<LayoutColumn> columns_;
  std::vector<std::vector<std::string>> lines_;  // the first one: headings
};

}  // namespace bench
