// Diagonals and coordinate grids.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "graph/trace_state.h"
#include "ops/api.h"
#include "ops/rules.h"
#include "shardarray/rearrange.h"

namespace shardarray {

// ---------------------------------------------------------------- diagonals
// Of the last two dimensions. Each row yields one element, so nothing moves if rows are sharded.
static Array last_diagonal(const Array& x, std::int64_t k) {
  const std::size_t row = x.shape().size() - 2, column = row + 1;
  const std::int64_t rows = x.shape()[row], columns = x.shape()[column];
  const std::int64_t near = std::clamp(k, -rows, columns);  // diagonals beyond these are empty
  const std::int64_t first_row = std::max<std::int64_t>(-near, 0),
                     first_column = std::max<std::int64_t>(near, 0);
  const std::int64_t n = std::min(rows - first_row, columns - first_column);
  const Array square = primitive::slice_dim(primitive::slice_dim(x, row, first_row, first_row + n), column,
                                            first_column, first_column + n);
  Shape picked = square.shape(), result = picked;
  result.pop_back();
  if (n == 0) return primitive::reshape(square, result);
  picked[column] = 1;
  const Array at = primitive::iota(picked, row, api::position_type({n}));
  return primitive::reshape(primitive::take_along(square, at, column), result);
}
static Array axes_diagonal(const char* function, const Array& x, std::int64_t k, std::int64_t axis1,
                           std::int64_t axis2) {
  const Shape& shape = type_of(x, function).shape;
  const Shape axes{static_cast<std::int64_t>(api::axis_of(function, axis1, shape)),
                   static_cast<std::int64_t>(api::axis_of(function, axis2, shape))};
  api::axes_of(function, axes, shape);
  return last_diagonal(moveaxis(x, axes, {-2, -1}), k);
}
Array diagonal_fn::operator()(const Array& x, std::int64_t k, std::int64_t axis1, std::int64_t axis2,
                              Where w) const {
  const Site site(w, "diagonal");
  return api::strong(axes_diagonal("diagonal", x, k, axis1, axis2));
}
Array trace_fn::operator()(const Array& x, std::int64_t k, std::int64_t axis1, std::int64_t axis2,
                           Where w) const {
  const Site site(w, "trace");
  return sum(axes_diagonal("trace", x, k, axis1, axis2), -1);
}
// A matrix mask: where `op` holds for column - row and k.
static Array where_diagonal(const Op& op, const Shape& matrix, std::int64_t k) {
  const DType t = api::position_type(matrix);
  const Array distance = primitive::sub(primitive::iota(matrix, 1, t), primitive::iota(matrix, 0, t));
  const std::int64_t near = std::clamp(k, -matrix[0], matrix[1]);  // beyond, all or nothing
  return primitive::binary(op, distance, primitive::like_whole(distance, near));
}
Array diag_fn::operator()(const Array& x, std::int64_t k, Where w) const {
  const Site site(w, "diag");
  const Shape& shape = type_of(x, "diag").shape;
  if (shape.size() == 2) return last_diagonal(x, k);
  if (shape.size() != 1)
    throw ShapeError(fmt::format(
        "diag: the operand is {}. A vector is put on a diagonal, of a matrix it is taken. Use diagonal, or "
        "reshape.",
        to_string(type_of(x))));
  if (k < -(std::int64_t{1} << 40) || k > std::int64_t{1} << 40)
    throw ShapeError(
        fmt::format("diag: diagonal {}. The result has as many rows more. Give a nearer one.", k));
  const std::int64_t n = shape[0] + std::abs(k);
  check_type({{n, n}, x.dtype()}, "diag");
  // element i is placed in row i + max(-k, 0)
  const Array rows = primitive::pad(x, {std::max<std::int64_t>(-k, 0)}, {std::max<std::int64_t>(k, 0)});
  return primitive::select(where_diagonal(op_eq, {n, n}, k), primitive::broadcast(rows, {n, n}, {-2}),
                           zeros_of({{n, n}, x.dtype(), type_of(x).weak}));
}
Array tri_fn::operator()(std::int64_t n, std::optional<std::int64_t> m, std::int64_t k, DType dtype,
                         Where w) const {
  const Site site(w, "tri");
  api::need_real("tri", dtype);
  const Shape shape{n, m.value_or(n)};
  check_type({shape, dtype}, "tri");
  return api::created(primitive::cast(where_diagonal(op_le, shape, k), dtype));
}
Array identity_matrix_fn::operator()(std::int64_t n, DType dtype, Where w) const {
  const Site site(w, "identity");
  return eye(n, std::nullopt, 0, dtype);
}

// ---------------------------------------------------------------- grids
std::vector<Array> meshgrid_fn::operator()(const std::vector<Array>& vectors, Indexing indexing,
                                           Where w) const {
  const Site site(w, "meshgrid");
  const std::size_t rank = vectors.size();
  std::vector<std::size_t> dims(rank);
  for (std::size_t k = 0; k < rank; k++) dims[k] = indexing == Indexing::xy && k < 2 && rank > 1 ? 1 - k : k;
  Shape shape = Shape::filled(rank, 1);
  for (std::size_t k = 0; k < rank; k++) {
    const Type& t = type_of(vectors[k], "meshgrid");
    if (t.shape.size() > 1)
      throw ShapeError(
          fmt::format("meshgrid: operand {} is {}. A grid has one vector for each dimension. Use ravel.", k,
                      to_string(t)));
    shape[dims[k]] = num_elements(t.shape);
  }
  std::vector<Array> r;
  r.reserve(rank);
  for (std::size_t k = 0; k < rank; k++)
    r.push_back(primitive::broadcast(primitive::reshape(vectors[k], {vectors[k].size()}), shape,
                                     {rules::from_last(dims[k], rank)}));
  return r;
}
Array indices_fn::operator()(const Shape& shape, DType dtype, Where w) const {
  const Site site(w, "indices");
  api::need_real("indices", dtype);
  Shape result = shape;
  result.insert(0, static_cast<std::int64_t>(shape.size()));
  check_type({result, dtype}, "indices");
  if (shape.empty()) return api::created(zeros_of({result, dtype, false}));
  std::vector<Array> along;
  along.reserve(shape.size());
  for (std::size_t d = 0; d < shape.size(); d++) along.push_back(primitive::iota(shape, d, dtype));
  return api::created(stack(along));
}

// Computed in float64, `change` applied, then converted to the requested dtype.
template <class Change>
static Array changed_spacing(const char* function, std::int64_t num, const LinspaceOptions& o, double start,
                             double stop, const Change& change) {
  api::need_real(function, o.dtype);
  if (num < 0)
    throw ShapeError(fmt::format(
        "{}: num is {}. The number of values is not negative. Give how many there are.", function, num));
  const Array even = linspace(start, stop, num, {.endpoint = o.endpoint, .dtype = float64});
  return api::created(primitive::cast(change(even), o.dtype));
}
Array logspace_fn::operator()(double start, double stop, std::int64_t num, const LinspaceOptions& o,
                              double base, Where w) const {
  const Site site(w, "logspace");
  return changed_spacing("logspace", num, o, start, stop,
                         [&](const Array& powers) { return power(primitive::like(powers, base), powers); });
}
Array geomspace_fn::operator()(double start, double stop, std::int64_t num, const LinspaceOptions& o,
                               Where w) const {
  const Site site(w, "geomspace");
  if (!(start > 0 && stop > 0) && !(start < 0 && stop < 0))
    throw Error(fmt::format(
        "geomspace: {} to {}. The ratio of neighbours is a positive number. Give two numbers of one "
        "sign that are not 0.",
        start, stop));
  const auto exponent = [](double v) { return std::log10(std::abs(v)); };
  return changed_spacing("geomspace", num, o, exponent(start), exponent(stop), [&](const Array& powers) {
    const Array size = power(primitive::like(powers, 10), powers);
    const Array k = primitive::iota(powers.shape(), 0, DType::float64);
    // both ends are exact
    const auto end = [&](double at, double v, const Array& other) {
      return primitive::select(primitive::binary(op_eq, k, primitive::like(k, at)), primitive::like(k, v),
                               other);
    };
    const Array r = end(0, start, start < 0 ? primitive::neg(size) : size);
    return o.endpoint && num > 1 ? end(static_cast<double>(num - 1), stop, r) : r;
  });
}

}  // namespace shardarray
