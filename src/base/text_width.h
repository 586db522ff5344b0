// UTF-8 texts in the columns of a terminal.
#pragma once
#include <cstddef>
#include <string_view>

namespace shardarray {

/// Columns that a text takes: two for letters of East Asia and emoji, as fmt pads them.
std::size_t text_width(std::string_view text);
/// Bytes of the longest beginning of at most `columns` columns, whole letters; of one letter at least.
std::size_t beginning_of(std::string_view text, std::size_t columns);

}  // namespace shardarray
