// Indexing with arrays: the data determines which elements are selected.
#pragma once
#include <optional>
#include <vector>

#include "base/reducer.h"
#include "ops/row_index.h"

namespace shardarray {

/// How the indexed part is changed.
enum class Update : std::uint8_t { set, add, mul, min, max };
/// a changed by b.
Array changed(Update how, const Array& a, const Array& b);

/// The reducer that does so in place.
Reducer combining(Update how, DType t);

/// An index with arrays.
struct ArraysAt {
  Indices basic;              ///< the same with full slices in place of arrays; it selects y
  std::vector<Array> arrays;  ///< integers
  Shape dims;                 ///< the dimensions of y that they index, increasing
  Shape own;                  ///< the sizes of these dimensions in the whole array
  std::size_t place = 0;      ///< position of their common dimensions in the result
};
bool has_arrays(const Indices& given);
bool is_mask(const char* function, const Index& i);
/// Throws ShapeError unless the mask's shape equals the dimensions of `shape` starting at `dim`.
void check_mask(const char* function, const Array& mask, const Shape& shape, std::size_t dim);
/// Replaces masks by the positions of true elements. Throws ShapeError for a mask of wrong shape, TraceError for one without a value.
ArraysAt arrays_in(const char* function, const Shape& shape, const Indices& given);

/// Whether it has no value because it is being traced.
bool is_traced(const Array& x);
/// The number of true elements. Throws TraceError without a value.
std::int64_t count_of_true(const char* function, const Array& mask);
/// Combines positions in several dimensions of these sizes to flat positions; -1 if outside. Throws DTypeError for non-integer arrays,
/// ShapeError if they cannot be broadcast.
RowIndex numbers_of(const char* function, const ArraysAt& at, const Shape& sizes, TakeMode mode,
                    bool from_end);

/// The rows of y selected by the arrays: one per element of their broadcast shape.
class ChosenRows {
 public:
  /// Throws DTypeError for non-integer arrays, ShapeError if they cannot be broadcast, or if y has no elements.
  ChosenRows(const char* function, const Array& y, const ArraysAt& at, TakeMode mode);
  /// The shape of the selection.
  Shape shape() const;
  Array get(std::optional<double> fill_value) const;
  /// y with its selected rows changed by v, which has that shape.
  Array updated(Update how, const Array& v) const;

 private:
  bool are_adjacent() const;                                        // the indexed dimensions
  Array written(Update how, const Array& y, const Array& v) const;  // row by row, into y
  Array combined(Update how, const Array& v) const;  // by a table of the updates of every row of y
  Array in_front(const Array& x) const;              // shape of y -> [rows, rest..]
  Array put_back(const Array& table) const;          // the inverse
  Array added(const Array& table, const Array& updates, Reducer reducer) const;
  Array extremum(const Array& table, const Array& updates, Reducer reducer) const;

  Array y_;
  Shape order_;         // y's dimensions, the indexed ones first
  Shape batch_, rest_;  // shape of the index arrays; y's other dimensions
  std::size_t place_;
  std::int64_t rows_ = 1;
  Array number_;  // [elements of the batch]; -1 if outside
  Array inside_;  // [batch..]; absent if all are inside
};

}  // namespace shardarray
