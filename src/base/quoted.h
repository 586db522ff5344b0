// Texts as literals of a program.
#pragma once
#include <string>
#include <string_view>

namespace shardarray {

/// `"a \"b\""`: in quotes, with what would end or change it escaped.
inline std::string in_quotes(std::string_view text) {
  std::string r = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') r += '\\';
    if (c == '\n') r += "\\n";
    else r += c;
  }
  return r + '"';
}

}  // namespace shardarray
