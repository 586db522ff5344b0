// Texts of pictures: lines, tables, and where they go.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace shardarray {

/// Rows of equal numbers of columns, each as wide as its widest entry, two blanks between them.
std::string table_text(const std::vector<std::vector<std::string>>& rows);
/// Lines of at most `width` columns, broken at blanks; longer words are broken between letters. UTF-8.
std::vector<std::string> wrapped_lines(const std::string& text, std::size_t width);

/// What a terminal shows: any colour, the 256 of xterm's palette, or none.
enum class Colors : std::uint8_t { none, palette, all };
/// Of standard output, by TERM and COLORTERM; none where it is no terminal, or NO_COLOR is not empty.
Colors terminal_colors();
/// The columns of the terminal that is standard output, else those that COLUMNS says; 0: neither.
int terminal_columns();
/// Writes to standard output, at once.
void print_text(const std::string& text);

}  // namespace shardarray
