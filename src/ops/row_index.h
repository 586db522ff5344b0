// Row positions as data, for take and scatter.
#pragma once
#include "shardarray/ops.h"

namespace shardarray {

/// Positions, and which of them are inside (absent: all).
struct RowIndex {
  Array at, inside;
};

/// Throws DTypeError unless it is an integer array.
void need_index(const char* function, const Array& index);
/// Throws ShapeError if there are indices but no rows along the axis.
void need_rows(const char* function, const Array& x, std::int64_t rows, std::int64_t axis,
               const Array& index);
/// Positions among `rows`, in an integer dtype that holds them all. `from_end`: negative ones count from the end; with mode fill they
/// always do.
RowIndex row_index(const Array& index, std::int64_t rows, TakeMode mode, bool from_end);
/// What take returns out of range: NaN, the lowest signed and the highest unsigned value.
Array outside_value(const Type& t);
/// `v` everywhere. Throws DTypeError if an integer dtype cannot represent it.
Array filled_with(const char* function, const Type& t, double v);
/// `taken` [.., i.., ..], where dimensions from `first` on are those of the index, with `otherwise` at indices out of range.
Array filled_outside(const Array& taken, const Array& inside, std::size_t first, const Array& otherwise);

/// x at positions along a dimension: [a.., n, c..], [i..] -> [a.., i.., c..]; zero bits out of range. The dimensions before it are a batch:
/// x is not transposed.
Array rows_along(const Array& x, const Array& index, std::size_t dim);
/// Throws DTypeError if x's dtype would drop fractions.
void check_kind(const char* function, const Type& x, const Type& v);
/// Throws ShapeError unless a value of that shape can be broadcast to the part.
void check_fits(const char* function, const Shape& value, const Shape& part);

}  // namespace shardarray
