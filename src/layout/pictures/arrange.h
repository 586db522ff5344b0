// From the blocks of a value to grids that fit the width, with a label that says who holds each block.
#pragma once
#include <string>
#include <vector>

#include "layout/pictures/blocks.h"
#include "layout/pictures/grid.h"
#include "shardarray/visualize.h"

namespace shardarray {

/// A picture before it is text.
struct Arrangement {
  Blocks blocks;
  std::vector<BlockGrid> facets;
  std::vector<std::string> notes;  ///< what the labels do not say, a paragraph each
};

/// `width`: in columns, of each facet. Labels are JAX's where they fit: `CPU 0,1`; else, in this order, they are shorter, stand for
/// several tiles, or are letters that the notes explain. Of an empty value there are no facets.
/// `palette`: colours are those of xterm's 256.
Arrangement arrange_blocks(const Shape& shape, const Layout& layout, const VisualizeOptions& options,
                           int width, bool palette);

}  // namespace shardarray
