// A grid of labelled blocks as text, character by character as JAX draws it.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace shardarray {

/// One block.
struct GridCell {
  std::string label;                             ///< may be broken at its blanks
  int left = 0, right = 0, top = 0, bottom = 0;  ///< blanks around the label
  std::string style;                             ///< the escape sequence of its colours
};

/// Blocks in rows and columns. With colours there are no lines between them.
struct BlockGrid {
  std::size_t rows = 0, columns = 0;
  std::vector<GridCell> cells;  ///< row-major
  std::vector<int> widths;      ///< of the columns
  bool color = false;

  /// Chooses the widths: the widest columns give way, evenly, until `width` columns of text suffice for the grid.
  void fit(int width);
  /// Where blanks around a label leave too little room, they give way. True if every label is whole then, in at most so many lines.
  bool make_room(std::size_t most_lines);
  /// How wide it is.
  int width() const;
  /// Its lines, each as wide as the grid.
  std::vector<std::string> lines() const;
};

/// `room` blanks as two halves, the second one larger; `more` is added before what is negative becomes 0.
std::pair<int, int> blank_halves(int room, int more);

}  // namespace shardarray
