// Texts as string literals of a program.
#pragma once
#include <string>
#include <string_view>

namespace shardarray {

/// `"a \"b\""`: quoted, with quotes, backslashes and newlines escaped.
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
