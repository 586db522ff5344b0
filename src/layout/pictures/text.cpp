#include "layout/pictures/text.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/text_width.h"

namespace shardarray {

std::string table_text(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows[0].size(), 0);
  for (const auto& row : rows)
    for (std::size_t c = 0; c + 1 < row.size(); c++) widths[c] = std::max(widths[c], text_width(row[c]));
  std::string out;
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); c++)
      out += fmt::format("{:<{}}{}", row[c], widths[c], c + 1 < row.size() ? "  " : "\n");
  return out;
}

std::vector<std::string> wrapped_lines(const std::string& text, std::size_t width) {
  std::vector<std::string> out(1);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    std::string word = text.substr(at, end - at);
    at = end + 1;
    if (!out.back().empty() && text_width(out.back()) + 1 + text_width(word) <= width) {
      out.back() += " " + word;
      continue;
    }
    if (!out.back().empty()) out.emplace_back();
    while (text_width(word) > width) {
      const std::size_t bytes = beginning_of(word, width);
      if (bytes == word.size()) break;
      out.back() = word.substr(0, bytes);
      out.emplace_back();
      word.erase(0, bytes);
    }
    out.back() = std::move(word);
  }
  return out;
}

namespace {

std::string_view variable(const char* name) {
  const char* const text = std::getenv(name);
  return text ? text : "";
}

}  // namespace

Colors terminal_colors() {
  const std::string_view term = variable("TERM"), kind = variable("COLORTERM");
  if (!isatty(STDOUT_FILENO) || !variable("NO_COLOR").empty()) return Colors::none;
  if (kind == "truecolor" || kind == "24bit" || term.ends_with("-direct")) return Colors::all;
  return term.find("256color") != term.npos ? Colors::palette : Colors::none;
}

int terminal_columns() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const std::string_view said = variable("COLUMNS");
  int columns = 0;
  const auto [end, error] = std::from_chars(said.data(), said.data() + said.size(), columns);
  return error == std::errc() && end == said.data() + said.size() && columns > 0 ? columns : 0;
}

void print_text(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace shardarray
