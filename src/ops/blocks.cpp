// Joining and splitting arrays of blocks, composed of concatenate, pad and slice.
#include <fmt/core.h>

#include "base/sizes.h"
#include "graph/trace_state.h"
#include "ops/api.h"
#include "shardarray/rearrange.h"

namespace shardarray {

// ---------------------------------------------------------------- splitting
// The axis that vsplit, hsplit or dsplit split.
static std::int64_t split_axis(const char* function, const Array& x, std::size_t axis) {
  const std::size_t rank = type_of(x, function).shape.size();
  if (axis == 1 && rank == 1) return 0;
  if (rank <= axis)
    throw ShapeError(
        fmt::format("{}: the operand is {}. It is cut along axis {}. Use split along another one.", function,
                    to_string(type_of(x)), axis));
  return static_cast<std::int64_t>(axis);
}
std::vector<Array> vsplit_fn::pieces(const Array& x, std::int64_t n, Where w) const {
  const Site site(w, "vsplit");
  return split(x, n, split_axis("vsplit", x, 0));
}
std::vector<Array> vsplit_fn::operator()(const Array& x, const Shape& positions, Where w) const {
  const Site site(w, "vsplit");
  return split(x, positions, split_axis("vsplit", x, 0));
}
std::vector<Array> hsplit_fn::pieces(const Array& x, std::int64_t n, Where w) const {
  const Site site(w, "hsplit");
  return split(x, n, split_axis("hsplit", x, 1));
}
std::vector<Array> hsplit_fn::operator()(const Array& x, const Shape& positions, Where w) const {
  const Site site(w, "hsplit");
  return split(x, positions, split_axis("hsplit", x, 1));
}
std::vector<Array> dsplit_fn::pieces(const Array& x, std::int64_t n, Where w) const {
  const Site site(w, "dsplit");
  return split(x, n, split_axis("dsplit", x, 2));
}
std::vector<Array> dsplit_fn::operator()(const Array& x, const Shape& positions, Where w) const {
  const Site site(w, "dsplit");
  return split(x, positions, split_axis("dsplit", x, 2));
}
std::vector<Array> unstack_fn::operator()(const Array& x, std::int64_t axis, Where w) const {
  const Site site(w, "unstack");
  Shape shape = type_of(x, "unstack").shape;
  const std::size_t dim = api::axis_of("unstack", axis, shape);
  const std::int64_t n = shape[dim];
  if (n > 1 << 20)
    throw ShapeError(
        fmt::format("unstack: {} along axis {}. There are at most 2^20 arrays. Use slices, or vmap.",
                    to_string(type_of(x)), axis));
  shape.erase(dim);
  std::vector<Array> r;
  r.reserve(static_cast<std::size_t>(n));
  for (std::int64_t k = 0; k < n; k++)
    r.push_back(primitive::reshape(primitive::slice_dim(x, dim, k, k + 1), shape));
  return r;
}

// ---------------------------------------------------------------- blocks
Array block(const std::vector<std::vector<Array>>& rows, Where w) {
  const Site site(w, "block");
  std::vector<Array> bands;
  bands.reserve(rows.size());
  for (const std::vector<Array>& row : rows) {
    std::vector<Array> parts;
    parts.reserve(row.size());
    for (const Array& x : row) parts.push_back(atleast_2d(x));
    bands.push_back(concatenate(parts, -1));
  }
  return concatenate(bands, -2);
}
Array block_diag_fn::operator()(const std::vector<Array>& matrices, Where w) const {
  const Site site(w, "block_diag");
  if (matrices.empty())
    throw ShapeError("block_diag: no matrices. The result has a dtype, which is theirs. Give at least one.");
  const WeakType t = api::promoted_all("block_diag", matrices);
  std::vector<Array> parts;
  std::int64_t width = 0, before = 0;
  for (const Array& x : matrices) {
    if (type_of(x, "block_diag").shape.size() > 2)
      throw ShapeError(
          fmt::format("block_diag: an operand is {}. It is a matrix. Use vmap for several of them.",
                      to_string(type_of(x))));
    parts.push_back(atleast_2d(api::cast(x, t)));
    width = add_sizes(width, parts.back().shape()[1]);
  }
  for (Array& x : parts) {
    const std::int64_t columns = x.shape()[1];
    x = primitive::pad(x, {0, before}, {0, width - before - columns});
    before += columns;
  }
  return primitive::concatenate(parts, 0);
}
Array matrix_transpose_fn::operator()(const Array& x, Where w) const {
  const Site site(w, "matrix_transpose");
  if (type_of(x, "matrix_transpose").shape.size() < 2)
    throw ShapeError(
        fmt::format("matrix_transpose: the operand is {}. The last two dimensions are a matrix. "
                    "Use reshape for a column.",
                    to_string(type_of(x))));
  return swapaxes(x, -1, -2);
}

}  // namespace shardarray
