// Products composed of matmul, tensordot and multiply.
#include "shardarray/products.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/count_text.h"
#include "base/sizes.h"
#include "graph/trace_state.h"
#include "ops/api.h"
#include "shardarray/complex.h"
#include "shardarray/linalg.h"

namespace shardarray {

Array outer_fn::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w, "outer");
  const std::int64_t rows = num_elements(type_of(a, "outer").shape),
                     columns = num_elements(type_of(b, "outer").shape);
  return multiply(primitive::reshape(a, {rows, 1}), primitive::reshape(b, {1, columns}));
}
Array inner_fn::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w, "inner");
  const Shape &sa = type_of(a, "inner").shape, &sb = type_of(b, "inner").shape;
  if (sa.empty() || sb.empty()) return multiply(a, b);
  if (sa.back() != sb.back())
    throw ShapeError(
        fmt::format("inner: {} with {}. The last dimensions must be equal. Transpose an operand.",
                    to_string(type_of(a)), to_string(type_of(b))));
  return tensordot(a, b, Shape{-1}, Shape{-1});
}
Array vdot_fn::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w, "vdot");
  const std::int64_t n = num_elements(type_of(a, "vdot").shape);
  if (n != num_elements(type_of(b, "vdot").shape))
    throw ShapeError(fmt::format("vdot: {} with {}. Both have as many elements. Use inner for one axis.",
                                 to_string(type_of(a)), to_string(type_of(b))));
  return tensordot(conjugate(primitive::reshape(a, {n})), primitive::reshape(b, {n}), 1);
}
Array vecdot_fn::operator()(const Array& a, const Array& b, std::int64_t axis, Where w) const {
  const Site site(w, "vecdot");
  api::axis_of("vecdot", axis, type_of(a, "vecdot").shape);
  api::axis_of("vecdot", axis, type_of(b, "vecdot").shape);
  return einsum("...i,...i->...", conjugate(moveaxis(a, axis, -1)), moveaxis(b, axis, -1));
}
static void need_matrix_and_vector(const char* function, const Array& matrix, const Array& vector) {
  if (type_of(matrix, function).shape.size() < 2 || type_of(vector, function).shape.empty())
    throw ShapeError(
        fmt::format("{}: matrices {} and vectors {}. A matrix has two dimensions, a vector one, behind those "
                    "of a batch. Reshape an operand.",
                    function, to_string(type_of(matrix)), to_string(type_of(vector))));
}
Array matvec_fn::operator()(const Array& a, const Array& v, Where w) const {
  const Site site(w, "matvec");
  need_matrix_and_vector("matvec", a, v);
  return einsum("...ij,...j->...i", a, v);
}
Array vecmat_fn::operator()(const Array& v, const Array& a, Where w) const {
  const Site site(w, "vecmat");
  need_matrix_and_vector("vecmat", a, v);
  return einsum("...i,...ij->...j", conjugate(v), a);
}
Array kron_fn::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w, "kron");
  Shape sa = type_of(a, "kron").shape, sb = type_of(b, "kron").shape, apart_a, apart_b, result;
  while (sa.size() < sb.size()) sa.insert(0, 1);
  while (sb.size() < sa.size()) sb.insert(0, 1);
  for (std::size_t d = 0; d < sa.size(); d++) {
    for (std::int64_t size : {sa[d], std::int64_t{1}}) apart_a.push_back(size);
    for (std::int64_t size : {std::int64_t{1}, sb[d]}) apart_b.push_back(size);
    result.push_back(mul_sizes(sa[d], sb[d]));
  }
  return primitive::reshape(multiply(primitive::reshape(a, apart_a), primitive::reshape(b, apart_b)), result);
}

// ---------------------------------------------------------------- cross
// Pads the last dimension from 2 to 3 elements.
static Array in_space(const Array& x) {
  const std::size_t rank = x.shape().size();
  Shape behind = Shape::filled(rank, 0);
  behind[rank - 1] = 3 - x.shape().back();
  return primitive::pad(x, Shape::filled(rank, 0), behind);
}
static Array rotated_last(const Array& x, std::int64_t by) { return roll(x, -by, -1); }
Array cross_fn::operator()(const Array& a, const Array& b, std::int64_t axis, Where w) const {
  const Site site(w, "cross");
  const Shape &sa = type_of(a, "cross").shape, &sb = type_of(b, "cross").shape;
  const std::int64_t na = sa[api::axis_of("cross", axis, sa)], nb = sb[api::axis_of("cross", axis, sb)];
  if ((na != 2 && na != 3) || (nb != 2 && nb != 3))
    throw ShapeError(
        fmt::format("cross: {} with {} along axis {}. A vector there has 2 or 3 elements. Name the axis of "
                    "the vectors.",
                    to_string(type_of(a)), to_string(type_of(b)), axis));
  const Array x = moveaxis(a, axis, -1), y = moveaxis(b, axis, -1);
  if (na == 2 && nb == 2) {
    const auto part = [](const Array& v, std::int64_t k) {
      const Shape& s = v.shape();
      return primitive::reshape(primitive::slice_dim(v, s.size() - 1, k, k + 1),
                                Shape(s.begin(), s.end() - 1));
    };
    return api::strong(subtract(multiply(part(x, 0), part(y, 1)), multiply(part(x, 1), part(y, 0))));
  }
  const Array u = in_space(x), v = in_space(y);
  const Array product = subtract(multiply(rotated_last(u, 1), rotated_last(v, 2)),
                                 multiply(rotated_last(u, 2), rotated_last(v, 1)));
  return moveaxis(api::strong(product), -1, axis);
}

// ---------------------------------------------------------------- powers and chains
Array matrix_power_fn::operator()(const Array& x, std::int64_t n, Where w) const {
  const Site site(w, "matrix_power");
  const Type& t = type_of(x, "matrix_power");
  if (t.shape.size() < 2 || t.shape.back() != t.shape[t.shape.size() - 2])
    throw ShapeError(fmt::format(
        "matrix_power: the operand is {}. A power is one of square matrices. Check the last two dimensions.",
        to_string(t)));
  if (n == 0)
    return primitive::cast(primitive::broadcast_to(eye(t.shape.back(), std::nullopt, 0, t.dtype), t.shape),
                           t.dtype, t.weak);
  Array square = n < 0 ? linalg::inv(x) : x, result;
  for (std::int64_t rest = n;; rest /= 2) {
    if (rest % 2 != 0) result = result.has_value() ? matmul(result, square) : square;
    if (rest / 2 == 0) return result;
    square = matmul(square, square);
  }
}

// The product of first .. last, split as `cut` says.
static Array chain_product(const std::vector<Array>& x, const std::vector<std::vector<std::size_t>>& cut,
                           std::size_t first, std::size_t last) {
  if (first == last) return x[first];
  const std::size_t at = cut[first][last];
  return matmul(chain_product(x, cut, first, at), chain_product(x, cut, at + 1, last));
}
Array multi_dot_fn::operator()(const std::vector<Array>& operands, Where w) const {
  const Site site(w, "multi_dot");
  const std::size_t n = operands.size();
  if (n < 2)
    throw ShapeError(
        fmt::format("multi_dot: {}. A chain has two at least. Give more.", count_text(n, "array")));
  const WeakType common = api::promoted_all("multi_dot", operands);
  std::vector<Array> x;
  x.reserve(n);
  for (std::size_t k = 0; k < n; k++) {
    const Type& t = type_of(operands[k], "multi_dot");
    const bool is_end = k == 0 || k + 1 == n;
    if (t.shape.size() != 2 && !(is_end && t.shape.size() == 1))
      throw ShapeError(fmt::format(
          "multi_dot: operand {} is {}. They are matrices; the first and the last may be vectors. "
          "Use matmul for batches.",
          k, to_string(t)));
    const bool is_vector = t.shape.size() == 1;
    const Array same = api::cast(operands[k], common);
    x.push_back(!is_vector ? same
                           : primitive::reshape(same, k == 0 ? Shape{1, t.shape[0]} : Shape{t.shape[0], 1}));
  }
  for (std::size_t k = 1; k < n; k++)
    if (x[k - 1].shape()[1] != x[k].shape()[0])
      throw ShapeError(fmt::format(
          "multi_dot: {} @ {} contracts {} with {}. Neighbours agree there. Transpose an operand.",
          to_string(type_of(operands[k - 1])), to_string(type_of(operands[k])), x[k - 1].shape()[1],
          x[k].shape()[0]));
  // cost[i][j]: the minimal number of multiplications for i .. j
  std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0));
  std::vector<std::vector<std::size_t>> cut(n, std::vector<std::size_t>(n, 0));
  for (std::size_t length = 1; length < n; length++)
    for (std::size_t i = 0; i + length < n; i++) {
      const std::size_t j = i + length;
      cost[i][j] = -1;
      for (std::size_t k = i; k < j; k++) {
        const double now = cost[i][k] + cost[k + 1][j] +
                           static_cast<double>(x[i].shape()[0]) * static_cast<double>(x[k].shape()[1]) *
                               static_cast<double>(x[j].shape()[1]);
        if (cost[i][j] >= 0 && cost[i][j] <= now) continue;
        cost[i][j] = now;
        cut[i][j] = k;
      }
    }
  const Array result = chain_product(x, cut, 0, n - 1);
  Shape shape;
  if (operands[0].shape().size() == 2) shape.push_back(result.shape()[0]);
  if (operands[n - 1].shape().size() == 2) shape.push_back(result.shape()[1]);
  return primitive::reshape(result, shape);
}

}  // namespace shardarray
