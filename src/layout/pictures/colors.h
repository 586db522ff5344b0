// Colours of blocks.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "shardarray/visualize.h"

namespace shardarray {

/// Escape sequences for `count` blocks, neighbours in different colours. A null map means matplotlib's tab20b. `palette`: round to xterm's
/// 256 colours.
std::vector<std::string> block_styles(std::size_t count, const std::function<Rgb(double)>& color_map,
                                      bool palette);

}  // namespace shardarray
