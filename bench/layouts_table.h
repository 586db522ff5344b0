// A table of layouts, for the terminal and in Markdown.
#pragma once
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "layouts_columns.h"
#include "layouts_output.h"

namespace bench {

/// The rows to show, each with its rank, its marks (`*`: the first, `a`: the library's choice) and the columns.
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

  /// In lines of `most` characters, if that can be reached by abbreviating transfers and C's that are no cuts. Abbreviations are explained
  /// below the table.
  std::string text(std::size_t most = kUsualWidth) const {
    Lines lines = lines_;
    const std::string notes = shorten(lines, most);
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
    return text + notes;
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
  using Lines = std::vector<std::vector<std::string>>;  // the first one: headings

  bool right(std::size_t column) const { return column == 0 || (column > 1 && columns_[column - 2].right); }
  static std::size_t width(const Lines& lines, std::size_t column) {
    std::size_t most = column == 1 ? 2 : 0;
    for (const std::vector<std::string>& l : lines) most = std::max(most, l[column].size());
    return most;
  }
  /// The position of a column; past the end: there is none.
  std::size_t column(std::string_view heading) const {
    return static_cast<std::size_t>(std::ranges::find(lines_[0], heading) - lines_[0].begin());
  }
  /// The characters that the other columns leave to this one; negative: they are too wide already.
  static std::ptrdiff_t room(const Lines& lines, std::size_t column, std::size_t most) {
    std::size_t others = 0;
    for (std::size_t k = 0; k < lines[0].size(); k++) others += k == column ? 1 : width(lines, k) + 1;
    return static_cast<std::ptrdiff_t>(most) - static_cast<std::ptrdiff_t>(others);
  }
  std::string shorten(Lines& lines, std::size_t most) const {
    const std::size_t moves = column("collectives");
    if (moves == lines[0].size()) return "";
    std::string notes;
    std::ptrdiff_t longest = 0;
    for (std::size_t k = 1; k < lines.size(); k++)
      longest = std::max(longest, std::ssize(x_.rows[k - 1].short_collectives));
    if (longest > room(lines, moves, most)) notes = number_results(lines);
    constexpr std::ptrdiff_t three_transfers = 28;
    const auto space = static_cast<std::size_t>(std::max(three_transfers, room(lines, moves, most)));
    std::map<std::string, std::string> kinds;  // by their initials
    for (std::size_t k = 1; k < lines.size(); k++) {
      std::string& text = lines[k][moves];
      if (text.size() <= space) continue;
      text = x_.rows[k - 1].short_collectives;
      if (text.size() > space) text = text.substr(0, space - 3) + "...";
      for (const std::string& kind : kinds_of(x_.rows[k - 1].collectives)) kinds[initials(kind)] = kind;
    }
    std::string legend;
    for (const auto& [letters, kind] : kinds)
      legend += fmt::format("{}{} {}", legend.empty() ? "" : ", ", letters, kind);
    return notes + (legend.empty() ? "" : legend + "\n");
  }
  /// C's that are no cuts become `[1]`, `[2]`. Returns a line for each.
  std::string number_results(Lines& lines) const {
    const std::size_t c = column("C");
    if (c == lines[0].size()) return "";
    std::vector<std::string> results;
    for (std::size_t k = 1; k < lines.size(); k++) {
      const std::string& result = x_.rows[k - 1].c_spelling;
      if (result.empty()) continue;
      const auto found = std::ranges::find(results, result);
      lines[k][c] = fmt::format("[{}]", found - results.begin() + 1);
      if (found == results.end()) results.push_back(result);
    }
    std::string text;
    for (std::size_t k = 0; k < results.size(); k++) text += fmt::format("[{}] C is {}\n", k + 1, results[k]);
    return text;
  }
  /// `all_gather(x:(4)2) exchange(x)` -> all_gather, exchange.
  static std::set<std::string> kinds_of(const std::string& collectives) {
    std::set<std::string> kinds;
    std::istringstream words(collectives);
    for (std::string word; words >> word;) kinds.insert(word.substr(0, word.find('(')));
    return kinds;
  }

  const LayoutResults& x_;
  std::vector<LayoutColumn> columns_;
  Lines lines_;
};

}  // namespace bench
