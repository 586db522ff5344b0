// Numbers of tables as text.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "shardarray/dtype.h"

namespace shardarray::data {

/// Writes the number that the text is to `to`, as an element of `t`. False: it is none, or a whole number that `t` does not have.
bool parse_number(std::string_view text, DType t, std::byte* to);
/// NaN, where `t` has it. False: it has not.
bool write_nan(DType t, std::byte* to);
/// Appends the shortest text that reads back as the element; of 16-bit floats it is that of the same float32.
void append_number(std::string& to, DType t, const std::byte* element);

}  // namespace shardarray::data
