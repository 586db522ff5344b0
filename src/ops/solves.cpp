// Linear equations: triangular_solve, lu_solve, and solve and inv in terms of them.
#include <fmt/core.h>

#include <algorithm>

#include "base/count_text.h"
#include "base/sizes.h"
#include "ops/complex.h"
#include "ops/matrices.h"
#include "shardarray/linalg.h"

namespace shardarray {

using namespace rules;

// ---------------------------------------------------------------- right-hand sides
// They may be sharded (letter K), except on lines that fix how sums are rounded.
static Rule sides_rule(const Call& c, std::string letters) {
  if (c.attrs->uncut) std::replace(letters.begin(), letters.end(), 'K', 'k');
  return matrices_rule(c, letters);
}

// Turns the first `count` dimensions of B into right-hand sides of one matrix, applies f and restores the shape.
template <class F> static Array with_more_sides(const Array& b, std::size_t count, bool is_left, const F& f) {
  const Shape& shape = b.shape();
  const std::size_t rank = shape.size(), column = rank - 1, row = rank - 2;
  Shape perm;
  const auto add = [&](std::size_t from, std::size_t to) {
    for (std::size_t d = from; d < to; d++) perm.push_back(static_cast<std::int64_t>(d));
  };
  add(count, is_left ? column : row);
  add(0, count);
  add(is_left ? column : row, rank);
  const Array apart = primitive::transpose(b, perm);
  Shape merged = matrices::batch_of(Shape(shape.begin() + count, shape.end()), 2);
  const std::int64_t more = num_elements(Shape(shape.begin(), shape.begin() + count));
  merged.push_back(is_left ? shape[row] : more * shape[row]);
  merged.push_back(is_left ? more * shape[column] : shape[column]);
  return primitive::transpose(primitive::reshape(f(primitive::reshape(apart, merged)), apart.shape()),
                              inverse(perm));
}

// ---------------------------------------------------------------- triangular_solve
static bool has_bit(const Attrs& a, std::uint64_t bit) { return (a.bits & bit) != 0; }

static Types triangular_type(const Call& c) {
  need_matrices(c, {2, 2});
  const Shape &a = c.in[0].shape, &b = c.in[1].shape;
  const std::int64_t n = b[b.size() - (has_bit(*c.attrs, primitive::left_side) ? 2 : 1)];
  if (a[a.size() - 1] != n || a[a.size() - 2] != n || c.in[0].dtype != c.in[1].dtype)
    throw InternalError(fmt::format("triangular_solve: operands {} and {}. They must fit and have one dtype.",
                                    to_string(c.in[0]), to_string(c.in[1])));
  return {c.in[1]};
}

static Array triangular_solve_again(const Array& a, const Array& b, const Attrs& attrs) {
  return primitive::triangular_solve(a, b, attrs.bits);
}

// dX = A^-1 (dB - dA X), in the order with the fewest multiplications; mirrored if A is on the right.
static Arrays triangular_jvp(const JvpArgs& v) {
  const Attrs& attrs = v.node.attrs();
  const bool is_left = has_bit(attrs, primitive::left_side);
  const Array &a = v.in[0], &x = v.out[0];
  Array r = v.tangents[1].has_value() ? triangular_solve_again(a, v.tangents[1], attrs) : Array();
  if (v.tangents[0].has_value()) {
    const std::int64_t off = has_bit(attrs, primitive::unit_diagonal) ? 1 : 0;
    Array da =
        has_bit(attrs, primitive::lower_triangle) ? tril(v.tangents[0], -off) : triu(v.tangents[0], off);
    da = primitive::neg(has_bit(attrs, primitive::transposed_matrix) ? matrices::turned(da) : da);
    const auto solved = [&](const Array& b) { return triangular_solve_again(a, b, attrs); };
    const bool few_sides = is_left ? matrices::size_from_last(x, 1) < matrices::size_from_last(x, 2)
                                   : matrices::size_from_last(x, 2) < matrices::size_from_last(x, 1);
    const Array change = is_left ? (few_sides ? solved(matmul(da, x)) : matmul(solved(da), x))
                                 : (few_sides ? solved(matmul(x, da)) : matmul(x, solved(da)));
    r = add_or(r, change);
  }
  return {r};
}

static Arrays triangular_transpose(const TransposeArgs& t) {
  return {Array(), primitive::triangular_solve(t.in[0], t.cotangents[0],
                                               t.node.attrs().bits ^ primitive::transposed_matrix)};
}

static Batched triangular_batch(const BatchArgs& b) {
  const Attrs& attrs = b.node.attrs();
  if (!b.mapped[0])
    return mapped({with_more_sides(b.in[1], 1, has_bit(attrs, primitive::left_side), [&](const Array& sides) {
      return triangular_solve_again(b.in[0], sides, attrs);
    })});
  return mapped({triangular_solve_again(with_rows(b, 0), with_rows(b, 1), attrs)});
}

static LocalCall triangular_call(const LowerArgs& l) {
  std::vector<std::int64_t> params;
  for (const std::uint64_t bit : {primitive::left_side, primitive::lower_triangle,
                                  primitive::transposed_matrix, primitive::unit_diagonal})
    params.push_back(has_bit(*l.call.attrs, bit) ? 1 : 0);
  return library_call(l, "triangular_solve", std::move(params));
}

// X with op(A) X = B or X op(A) = B; attrs.bits: left_side | ...
SHARDARRAY_OP op_triangular_solve{
    .name = "triangular_solve",
    .form = Form::library,
    .rule =
        [](const Call& c) {
          return sides_rule(c, has_bit(*c.attrs, primitive::left_side) ? "ij,iK->iK" : "ij,Ki->Ki");
        },
    .type = triangular_type,
    .jvp = triangular_jvp,
    .transpose = triangular_transpose,
    .batch = triangular_batch,
    .lower = triangular_call,
    .trait = Trait::sums,
    .whole_complex = true};

Array primitive::triangular_solve(const Array& a, const Array& b, std::uint64_t bits) {
  Attrs attrs;
  attrs.bits = bits;
  return record(op_triangular_solve, {a, b}, std::move(attrs));
}

// ---------------------------------------------------------------- lu_solve
static Types lu_solve_type(const Call& c) {
  need_matrices(c, {2, 1, 2, 2});
  const Shape &a = c.in[0].shape, &b = c.in[2].shape;
  const std::int64_t n = b[b.size() - 2];
  if (a[a.size() - 1] != n || a[a.size() - 2] != n || c.in[0].dtype != c.in[2].dtype)
    throw InternalError(fmt::format("lu_solve: operands {} and {}. They must fit and have one dtype.",
                                    to_string(c.in[0]), to_string(c.in[2])));
  return {c.in[2]};
}

// dX = A^-1 (dB - dA X) with the same factors, also for higher derivatives: therefore A is an operand.
static Arrays lu_solve_jvp(const JvpArgs& v) {
  const bool is_transposed = v.node.attrs().bits != 0;
  Array b = v.tangents[2];
  if (const Array& da = v.tangents[3]; da.has_value())
    b = add_or(b, primitive::neg(matmul(is_transposed ? matrices::turned(da) : da, v.out[0])));
  return {b.has_value() ? primitive::lu_solve(v.in[0], v.in[1], b, v.in[3], is_transposed) : Array()};
}

static Batched lu_solve_batch(const BatchArgs& b) {
  const bool is_transposed = b.node.attrs().bits != 0;
  if (!b.mapped[0] && !b.mapped[1] && !b.mapped[3])
    return mapped({with_more_sides(b.in[2], 1, true, [&](const Array& sides) {
      return primitive::lu_solve(b.in[0], b.in[1], sides, b.in[3], is_transposed);
    })});
  return mapped({primitive::lu_solve(with_rows(b, 0), with_rows(b, 1), with_rows(b, 2), with_rows(b, 3),
                                     is_transposed)});
}

// X with A X = B (attrs.bits 1: A^T X = B), from the factors of A, which have no derivative of their own, its pivots, B, and A.
SHARDARRAY_OP op_lu_solve{
    .name = "lu_solve",
    .form = Form::library,
    .rule = [](const Call& c) { return sides_rule(c, "ij,i,iK,ij->iK"); },
    .type = lu_solve_type,
    .jvp = lu_solve_jvp,
    .transpose =
        [](const TransposeArgs& t) {
          return Arrays{
              Array(), Array(),
              primitive::lu_solve(t.in[0], t.in[1], t.cotangents[0], t.in[3], t.node.attrs().bits == 0),
              Array()};
        },
    .batch = lu_solve_batch,
    .lower =
        [](const LowerArgs& l) {
          return library_call(l, "lu_solve", {static_cast<std::int64_t>(l.call.attrs->bits)});
        },
    .trait = Trait::sums,
    .whole_complex = true};

Array primitive::lu_solve(const Array& lu, const Array& pivots, const Array& b, const Array& a,
                          bool transposed) {
  Attrs attrs;
  attrs.bits = transposed ? 1 : 0;
  return record(op_lu_solve, {lu, pivots, b, a}, std::move(attrs));
}

// ---------------------------------------------------------------- solve, solve_triangular, inv
// f(A, B) with equal batches of matrices, whatever was given. `is_vector`: B is a vector.
template <class F>
static Array of_equations(const char* function, const Array& a, const Array& b, bool is_vector, bool is_left,
                          const F& f) {
  const Shape &sa = type_of(a, function).shape, &sb = type_of(b, function).shape;
  WeakType t = api::to_inexact(api::promoted(function, {&a, &b}));
  t.weak = false;
  WeakType own;
  matrices::square_operand(function, a, own);
  if (sb.empty() || (sb.size() < 2 && !is_vector) ||
      sb[sb.size() - (is_left && !is_vector ? 2 : 1)] != sa.back())
    throw ShapeError(fmt::format(
        "{}: {} with right-hand sides {}. They have as many {} as A. Check the last dimensions, or "
        "add one with expand_dims.",
        function, to_string(type_of(a)), to_string(type_of(b)), is_left ? "rows" : "columns"));
  Array x = api::cast(a, api::computed(t)), y = api::cast(b, api::computed(t));
  if (is_vector) {
    Shape as_matrix = sb;
    as_matrix.insert(is_left ? sb.size() : sb.size() - 1, 1);
    y = primitive::reshape(y, as_matrix);
  }
  const Shape batches[] = {matrices::batch_of(sa, 2), matrices::batch_of(y.shape(), 2)};
  const Shape batch = api::common_shape(function, batches);
  const std::size_t more = sa.size() == 2 ? batches[1].size() : 0;  // for a single matrix
  if (more == 0) {
    x = primitive::broadcast_to(x, joined_shape(batch, {sa.back(), sa.back()}));
    y = primitive::broadcast_to(
        y, joined_shape(batch, {matrices::size_from_last(y, 2), matrices::size_from_last(y, 1)}));
  }
  Array r = more == 0 ? f(x, y)
                      : with_more_sides(y, more, is_left, [&](const Array& sides) { return f(x, sides); });
  if (is_vector) {
    Shape as_vector = r.shape();
    as_vector.erase(is_left ? as_vector.size() - 1 : as_vector.size() - 2);
    r = primitive::reshape(r, as_vector);
  }
  return api::cast(r, t);
}

static std::uint64_t triangle_bits(bool left, bool lower, bool transposed, bool unit) {
  using namespace primitive;
  const auto bit = [](bool on, std::uint64_t b) { return on ? b : 0; };
  return bit(left, left_side) | bit(lower, lower_triangle) | bit(transposed, transposed_matrix) |
         bit(unit, unit_diagonal);
}

Array linalg::solve_fn::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w, "linalg::solve");
  const bool is_vector = type_of(b, "linalg::solve").shape.size() == 1;
  return of_equations("linalg::solve", a, b, is_vector, true, [](const Array& x, const Array& sides) {
    const Arrays factors = primitive::lu(stop_gradient(x));
    return primitive::lu_solve(factors[0], factors[1], sides, x);
  });
}
Array linalg::triangular_solve_fn::operator()(const Array& a, const Array& b, const TriangularSolveOptions& o,
                                              Where w) const {
  const Site site(w, "linalg::triangular_solve");
  const std::uint64_t bits = triangle_bits(o.left_side, o.lower, o.transpose_a, o.unit_diagonal);
  const bool is_vector = type_of(b, "linalg::triangular_solve").shape.size() + 1 ==
                         type_of(a, "linalg::triangular_solve").shape.size();
  return of_equations(
      "linalg::triangular_solve", a, b, is_vector, o.left_side, [&](const Array& x, const Array& sides) {
        return primitive::triangular_solve(o.conjugate_a ? primitive::conj(x) : x, sides, bits);
      });
}
Array linalg::solve_triangular_fn::operator()(const Array& a, const Array& b, const SolveTriangularOptions& o,
                                              Where w) const {
  const Site site(w, "linalg::solve_triangular");
  const std::uint64_t bits = triangle_bits(true, o.lower, o.trans, o.unit_diagonal);
  const bool is_vector = type_of(b, "linalg::solve_triangular").shape.size() == 1;
  return of_equations("linalg::solve_triangular", a, b, is_vector, true,
                      [&](const Array& x, const Array& sides) {
                        return primitive::triangular_solve(o.conjugate ? primitive::conj(x) : x, sides, bits);
                      });
}
Array linalg::inv_fn::operator()(const Array& a, Where w) const {
  const Site site(w, "linalg::inv");
  WeakType t;
  const Array x = matrices::square_operand("linalg::inv", a, t);
  const Arrays factors = primitive::lu(stop_gradient(x));
  return api::cast(primitive::lu_solve(factors[0], factors[1], matrices::identity_like(x), x), t);
}

// ---------------------------------------------------------------- arrays as matrices
// The product of some sizes.
static std::int64_t product_of(const Shape& shape, std::size_t first, std::size_t last) {
  std::int64_t n = 1;
  for (std::size_t d = first; d < last; d++) n = mul_sizes(n, shape[d]);
  return n;
}
Array linalg::tensorinv_fn::operator()(const Array& a, std::int64_t ind, Where w) const {
  const Site site(w, "linalg::tensorinv");
  const Shape& shape = type_of(a, "linalg::tensorinv").shape;
  if (ind < 1 || ind > std::ssize(shape))
    throw ShapeError(fmt::format(
        "linalg::tensorinv: ind is {} of {}. It is how many of them are rows, 1 at least. Give another one.",
        ind, count_text(shape.size(), "dimension")));
  const auto rows = static_cast<std::size_t>(ind);
  const std::int64_t n = product_of(shape, 0, rows), m = product_of(shape, rows, shape.size());
  if (n != m)
    throw ShapeError(
        fmt::format("linalg::tensorinv: {} as a matrix of {} x {}. It is square. Choose ind so "
                    "that both products of sizes are equal.",
                    to_string(type_of(a)), n, m));
  Shape turned(shape.begin() + ind, shape.end());
  for (std::size_t d = 0; d < rows; d++) turned.push_back(shape[d]);
  return primitive::reshape(inv(primitive::reshape(a, {n, n})), turned);
}
Array linalg::tensorsolve_fn::operator()(const Array& a, const Array& b, const Shape& axes, Where w) const {
  const Site site(w, "linalg::tensorsolve");
  const Shape& right = type_of(b, "linalg::tensorsolve").shape;
  const auto rank = std::ssize(type_of(a, "linalg::tensorsolve").shape), last = std::ssize(axes);
  Shape to;
  for (std::int64_t k = 0; k < last; k++) to.push_back(rank - last + k);
  const Array x = axes.empty() ? a : moveaxis(a, axes, to);
  const Shape& shape = x.shape();
  const std::size_t of_rows = right.size();
  const bool fits =
      shape.size() >= of_rows && Shape(shape.begin(), shape.begin() + std::ssize(right)) == right;
  const std::int64_t n = b.size(), m = fits ? product_of(shape, of_rows, shape.size()) : 0;
  if (!fits || n != m)
    throw ShapeError(fmt::format(
        "linalg::tensorsolve: {} and {}. The first dimensions are those of b, and the others have "
        "as many elements. Name the axes of the solution.",
        to_string(type_of(x)), to_string(type_of(b))));
  const Array flat = solve(primitive::reshape(x, {n, n}), primitive::reshape(b, {n}));
  return primitive::reshape(flat, Shape(shape.begin() + std::ssize(right), shape.end()));
}

}  // namespace shardarray
