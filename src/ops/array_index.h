// Subscripts with arrays: elements that data chooses.
#pragma once
#include <optional>
#include <vector>

#include "base/reducer.h"
#include "ops/row_index.h"

namespace shardarray {

/// What becomes of the indexed part.
enum class Update : std::uint8_t { set, add, mul, min, max };
/// a where b is put.
Array changed(Update how, const Array& a, const Array& b);

/// A subscript with arrays.
struct ArraysAt {
  Indices basic;              ///< the same with whole dimensions in the arrays' places; what it chooses is y
  std::vector<Array> arrays;  ///< of integers
  Shape dims;                 ///< the dimensions of y where they stand, increasing
  Shape own;                  ///< the same dimensions of the whole array
  std::size_t place = 0;      ///< where their common dimensions stand in the result
};
bool has_arrays(const Indices& given);
bool is_mask(const char* function, const Index& i);
/// Throws ShapeError unless the mask is as long as the dimensions of `shape` from `dim` on.
void check_mask(const char* function, const Array& mask, const Shape& shape, std::size_t dim);
/// Masks become the positions of what is true. Throws ShapeError for a mask that is not as long as its dimensions of `shape`,
/// TraceError where it has no value.
ArraysAt arrays_in(const char* function, const Shape& shape, const Indices& given);

/// Has it no values, because a function is traced that makes it?
bool is_traced(const Array& x);
/// How many are true. Throws TraceError where that has no value.
std::int64_t count_of_true(const char* function, const Array& mask);
/// The positions in several dimensions, of these sizes, as positions in all of them; outside -1. Throws DTypeError for arrays that
/// hold no integers, ShapeError where they cannot be broadcast.
RowIndex numbers_of(const char* function, const ArraysAt& at, const Shape& sizes, TakeMode mode,
                    bool from_end);

/// The rows of y that the arrays choose: a row for each combination of positions in their dimensions.
class ChosenRows {
 public:
  /// Throws DTypeError for arrays that hold no integers, ShapeError where they cannot be broadcast, or y has no elements.
  ChosenRows(const char* function, const Array& y, const ArraysAt& at, TakeMode mode);
  /// Of what is chosen.
  Shape shape() const;
  Array get(std::optional<double> fill_value) const;
  /// y with v, which has that shape, in the chosen rows.
  Array updated(Update how, const Array& v) const;

 private:
  Array in_front(const Array& x) const;      // y or like it -> [rows, rest..]
  Array put_back(const Array& table) const;  // the other way
  Array added(const Array& table, const Array& updates, Reducer reducer) const;
  Array extremum(const Array& table, const Array& updates, Reducer reducer) const;

  Array y_;
  Shape order_;         // its dimensions, those of the arrays first
  Shape batch_, rest_;  // the shape of the index; the other dimensions of y
  std::size_t place_;
  std::int64_t rows_ = 1;
  Array number_;  // [elements of the batch]; outside -1
  Array inside_;  // [batch..]; absent: all are
};

}  // namespace shardarray
