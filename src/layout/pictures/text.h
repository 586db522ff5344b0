// Texts of pictures: lines, tables, and where they go.
#pragma once
#include <string>
#include <vector>

namespace shardarray {

/// Rows of equal numbers of columns, each as wide as its widest entry, two blanks between them.
std::string table_text(const std::vector<std::vector<std::string>>& rows);
/// Lines of at most `width` columns, broken at blanks; longer words are broken anywhere. ASCII.
std::vector<std::string> wrapped_lines(const std::string& text, std::size_t width);

/// Standard output is a terminal that shows colours: NO_COLOR is unset and TERM is not `dumb`.
bool is_color_terminal();
/// The columns of the terminal that is standard output; 0: it is none, or does not say.
int terminal_columns();
/// Writes to standard output, at once.
void print_text(const std::string& text);

}  // namespace shardarray
