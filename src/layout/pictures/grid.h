// A grid of labelled blocks as text, identical to JAX's output.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace shardarray {

/// One block.
struct GridCell {
  std::string label;                             ///< may be wrapped at blanks
  int left = 0, right = 0, top = 0, bottom = 0;  ///< blanks around the label
  std::string style;                             ///< escape sequence of its colours
};

/// Blocks in rows and columns. Coloured grids have no lines between them.
struct BlockGrid {
  std::size_t rows = 0, columns = 0;
  std::vector<GridCell> cells;  ///< row-major
  std::vector<int> widths;      ///< of the columns
  bool color = false;

  /// Chooses the widths: shrinks the widest columns evenly until the grid fits into `width` columns of text.
  void fit(int width);
  /// Removes padding of labels that lack room. True if then every label fits whole, in at most `most_lines` lines.
  bool make_room(std::size_t most_lines);
  /// Total width.
  int width() const;
  /// All lines, each as wide as the grid.
  std::vector<std::string> lines() const;
};

/// `room` blanks split in two, the second half larger; `more` is added to each before negative values become 0.
std::pair<int, int> blank_halves(int room, int more);

}  // namespace shardarray
