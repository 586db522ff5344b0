// Width of UTF-8 texts in a terminal.
#pragma once
#include <cstddef>
#include <string_view>

namespace shardarray {

/// Columns of a text: two for East Asian letters and emoji, as fmt pads them.
std::size_t text_width(std::string_view text);
/// Bytes of the longest prefix of whole letters that fits into `columns` columns; at least one letter.
std::size_t beginning_of(std::string_view text, std::size_t columns);

}  // namespace shardarray
