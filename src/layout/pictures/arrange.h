// Arranges the blocks of a value in grids that fit the width, each labelled with the devices that hold it.
#pragma once
#include <string>
#include <vector>

#include "layout/pictures/blocks.h"
#include "layout/pictures/grid.h"
#include "shardarray/visualize.h"

namespace shardarray {

/// A picture before rendering.
struct Arrangement {
  Blocks blocks;
  std::vector<BlockGrid> facets;
  std::vector<std::string> notes;  ///< explanations of the labels, one paragraph each
};

/// `width`: in columns, per facet. Labels are JAX's if they fit (`CPU 0,1`); otherwise, in this order, they get shorter, cover several
/// tiles, or become letters explained in the notes. An empty value has no facets. `palette`: use xterm's 256 colours.
Arrangement arrange_blocks(const Shape& shape, const Layout& layout, const VisualizeOptions& options,
                           int width, bool palette);

}  // namespace shardarray
