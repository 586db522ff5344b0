// Numbers of tables as text.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "shardarray/dtype.h"

namespace shardarray::data {

/// Parses a number and writes it to `to` as an element of `t`. False: it is no number, or an integer that `t` does not have.
bool parse_number(std::string_view text, DType t, std::byte* to);
/// Writes NaN. False: `t` has none.
bool write_nan(DType t, std::byte* to);
/// Appends the shortest text that reads back as the element; 16-bit floats are written as float32.
void append_number(std::string& to, DType t, const std::byte* element);

}  // namespace shardarray::data
