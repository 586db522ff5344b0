// Text output of pictures: lines, tables, terminals.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace shardarray {

/// Rows with equal numbers of columns, aligned, two blanks between columns.
std::string table_text(const std::vector<std::vector<std::string>>& rows);
/// Lines of at most `width` columns, wrapped at blanks; longer words are broken between letters. UTF-8.
std::vector<std::string> wrapped_lines(const std::string& text, std::size_t width);

/// What a terminal can show: all colours, xterm's 256-colour palette, or none.
enum class Colors : std::uint8_t { none, palette, all };
/// For standard output, by TERM and COLORTERM; none if it is no terminal, or if NO_COLOR is not empty.
Colors terminal_colors();
/// Columns of standard output if it is a terminal, else COLUMNS; 0 if unknown.
int terminal_columns();
/// Writes to standard output and flushes.
void print_text(const std::string& text);

}  // namespace shardarray
