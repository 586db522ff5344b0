#include "layout/pictures/text.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace shardarray {

std::string table_text(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows[0].size(), 0);
  for (const auto& row : rows)
    for (std::size_t c = 0; c + 1 < row.size(); c++) widths[c] = std::max(widths[c], row[c].size());
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
    if (!out.back().empty() && out.back().size() + 1 + word.size() <= width) {
      out.back() += " " + word;
      continue;
    }
    if (!out.back().empty()) out.emplace_back();
    for (; word.size() > width; word.erase(0, width)) {
      out.back() = word.substr(0, width);
      out.emplace_back();
    }
    out.back() = std::move(word);
  }
  return out;
}

bool is_color_terminal() {
  const char *term = std::getenv("TERM"), *no_color = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) && !no_color && term && std::strcmp(term, "dumb") != 0;
}

int terminal_columns() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void print_text(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace shardarray
