#include "ops/row_index.h"

#include <fmt/core.h>

#include <cmath>
#include <limits>

#include "base/count_text.h"
#include "ops/api.h"

namespace shardarray {

void need_index(const char* function, const Array& index) {
  if (!is_integer(type_of(index, function).dtype)) api::refuse_dtype(function, index, "Indices are integers");
}
void need_rows(const char* function, const Array& x, std::int64_t rows, std::int64_t axis,
               const Array& index) {
  if (rows == 0 && index.size() > 0)
    throw ShapeError(
        fmt::format("{}: {} has no elements along axis {} for {}. An index needs an "
                    "element. Check the size first.",
                    function, to_string(type_of(x)), axis, count_text(index.size(), "index", "indices")));
}

RowIndex row_index(const Array& index, std::int64_t rows, TakeMode mode, bool from_end) {
  const bool fits = primitive::is_value(index.dtype(), rows, false);
  Array i = itemsize(index.dtype()) < 4 || !fits ? primitive::cast(index, api::position_type({rows})) : index;
  const bool can_be_negative = is_signed_integer(i.dtype());
  const auto at = [&](std::int64_t v) { return primitive::like_whole(i, v); };
  const auto moved_up = [&] {
    i = primitive::select(primitive::binary(op_lt, i, at(0)), primitive::add(i, at(rows)), i);
  };
  if (mode == TakeMode::wrap && rows > 0) {
    i = primitive::binary(op_rem, i, at(rows));
    if (can_be_negative) moved_up();
    return {i, {}};
  }
  if (can_be_negative && (from_end || mode == TakeMode::fill)) moved_up();
  if (mode == TakeMode::clip) {
    if (can_be_negative) i = primitive::binary(op_max, i, at(0));
    return {primitive::binary(op_min, i, at(rows - 1)), {}};
  }
  Array inside = primitive::binary(op_lt, i, at(rows));
  if (can_be_negative) inside = primitive::binary(op_and, inside, primitive::binary(op_ge, i, at(0)));
  return {i, inside};
}

Array outside_value(const Type& t) {
  if (is_inexact(t.dtype)) return primitive::full(t.shape, t.dtype, std::numeric_limits<double>::quiet_NaN());
  const double infinity = std::numeric_limits<double>::infinity();
  return primitive::full(t.shape, t.dtype, is_signed_integer(t.dtype) ? -infinity : infinity);
}
Array filled_with(const char* function, const Type& t, double v) {
  const bool is_whole = std::abs(v) < 0x1p63 && std::trunc(v) == v;
  const bool is_bool = t.dtype == DType::bool_ && (v == 0 || v == 1);
  if (!is_inexact(t.dtype) && !is_bool &&
      !(is_whole && is_integer(t.dtype) && primitive::is_value(t.dtype, static_cast<std::int64_t>(v), false)))
    throw DTypeError(
        fmt::format("{}: fill_value {} in an array {}. It is one of its values. Give another one.", function,
                    v, to_string(t)));
  return primitive::cast(primitive::full(t.shape, t.dtype, v), t.dtype, t.weak);
}
Array filled_outside(const Array& taken, const Array& inside, std::size_t first, const Array& otherwise) {
  const Shape& shape = taken.shape();
  Shape dims;
  for (std::size_t d = 0; d < inside.shape().size(); d++)
    dims.push_back(static_cast<std::int64_t>(first + d) - std::ssize(shape));
  return primitive::select(primitive::broadcast(inside, shape, dims), taken, otherwise);
}

Array rows_along(const Array& x, const Array& index, std::size_t dim) {
  Shape everywhere;
  for (std::size_t d = 0; d < dim; d++) everywhere.push_back(x.shape()[d]);
  for (const std::int64_t n : index.shape()) everywhere.push_back(n);
  return primitive::take(x, primitive::broadcast_to(index, everywhere), static_cast<std::int64_t>(dim),
                         std::ssize(index.shape()));
}

// Fractions and imaginary parts are never dropped implicitly.
void check_kind(const char* function, const Type& x, const Type& v) {
  if (is_inexact(x.dtype) && is_complex(v.dtype) && !is_complex(x.dtype))
    throw DTypeError(fmt::format(
        "{}: {} in an array {}. Its imaginary part would be lost: x.astype({}) holds it, real(v) drops it.",
        function, to_string(v), to_string(x), name(v.dtype)));
  if (is_inexact(x.dtype) || !is_inexact(v.dtype)) return;
  throw DTypeError(fmt::format(
      "{}: {} in an array {}. Fractions would be lost: x.astype({}) holds them, v.astype({}) drops them.",
      function, to_string(v), to_string(x), name(v.dtype), name(x.dtype)));
}

void check_fits(const char* function, const Shape& value, const Shape& part) {
  const Shape shapes[] = {value, part};
  if (api::common_shape(function, shapes) == part) return;
  throw ShapeError(
      fmt::format("{}: a value of shape {} for an indexed part of shape {}. The value is broadcast to the "
                  "part. Give a value that fits.",
                  function, to_string(value), to_string(part)));
}

}  // namespace shardarray
