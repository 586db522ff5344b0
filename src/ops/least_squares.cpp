// Functions of singular values: pinv, norms, cond, matrix_rank, lstsq.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/complex_parts.h"
#include "ops/complex.h"
#include "ops/matrices.h"
#include "shardarray/linalg.h"

namespace shardarray {

using namespace rules;

static double epsilon_of(DType t) {
  return part_type(t) == DType::float32 ? std::numeric_limits<float>::epsilon()
                                        : std::numeric_limits<double>::epsilon();
}
static double sides_of(const Array& a) {
  return static_cast<double>(std::max(matrices::size_from_last(a, 1), matrices::size_from_last(a, 2)));
}
// Element 0 of the last dimension, which is kept.
static Array first_value(const Array& s) { return primitive::slice_dim(s, s.shape().size() - 1, 0, 1); }
static bool is_empty_matrix(const Array& a) {
  return matrices::size_from_last(a, 1) == 0 || matrices::size_from_last(a, 2) == 0;
}
static Array scaled_rows(const Array& factors, const Array& x) {
  return primitive::mul_real(x, primitive::broadcast_to(expand_dims(factors, -1), x.shape()));
}
// 1 / s where `counts`, else 0 with zero derivative.
static Array inverse_where(const Array& counts, const Array& s) {
  const Array one = primitive::like(s, 1);
  return primitive::select(counts, primitive::div(one, primitive::select(counts, s, one)),
                           primitive::like(s, 0));
}

// ---------------------------------------------------------------- pinv
// Golub and Pereyra 1973, in the order that multiplies the smaller matrices.
static Arrays pinv_jvp(const JvpArgs& v) {
  using matrices::adjoint;
  const Array &p = v.out[0], &a = v.in[1], &da = v.tangents[1];
  if (!da.has_value()) return {Array()};
  const bool is_tall = matrices::size_from_last(a, 2) >= matrices::size_from_last(a, 1);
  const Array pt = adjoint(p), dt = adjoint(da);
  const auto sum = [](const Array& x, const Array& y) { return primitive::add(x, y); };
  const auto less = [](const Array& x, const Array& y) { return primitive::sub(x, y); };
  if (is_tall) {
    const Array s = matmul(matmul(p, pt), dt), t = matmul(matmul(dt, pt), p);
    return {sum(less(sum(primitive::neg(matmul(matmul(p, da), p)), s), matmul(matmul(s, a), p)),
                less(t, matmul(matmul(p, a), t)))};
  }
  const Array s = matmul(p, matmul(pt, dt)), t = matmul(dt, matmul(pt, p));
  return {sum(less(sum(primitive::neg(matmul(p, matmul(da, p))), s), matmul(s, matmul(a, p))),
              less(t, matmul(p, matmul(a, t))))};
}

// The pseudo-inverse of A as a value with the derivative for constant rank.
SHARDARRAY_OP op_pinv{.name = "pinv",
                      .form = Form::view,
                      .rule = [](const Call& c) { return matrices_rule(c, "ji,ij->ji"); },
                      .jvp = pinv_jvp,
                      .trait = Trait::alias};

static Array pinv_of(const Array& a, const linalg::PinvOptions& o) {
  const double rtol = o.rtol.value_or(10 * sides_of(a) * epsilon_of(a.dtype()));
  const auto counts = [&](const Array& s, const Array& largest) {
    return primitive::binary(
        op_gt, s,
        primitive::broadcast_to(primitive::mul(largest, primitive::like(largest, rtol)), s.shape()));
  };
  if (o.hermitian) {
    const Arrays r = primitive::eigh(a, primitive::eigenvectors | primitive::of_lower_triangle);
    const Array size = abs(r[0]);
    return matmul(r[1],
                  scaled_rows(inverse_where(counts(size, max(size, {.axis = -1, .keepdims = true})), r[0]),
                              matrices::adjoint(r[1])));
  }
  const Arrays r = primitive::svd(a, primitive::singular_vectors);
  return matmul(matrices::adjoint(r[2]),
                scaled_rows(inverse_where(counts(r[0], first_value(r[0])), r[0]), matrices::adjoint(r[1])));
}
Array linalg::pinv_fn::operator()(const Array& a, const PinvOptions& o, Where w) const {
  const Site site(w, "linalg::pinv");
  WeakType t;
  Array x = matrices::operand("linalg::pinv", a, t);
  if (o.hermitian) {
    matrices::need_square("linalg::pinv", a);
    x = matrices::symmetrized(x);
  }
  if (is_empty_matrix(x)) return zeros_of({matrices::turned(x).shape(), t.dtype, false});
  return api::cast(record(op_pinv, {pinv_of(stop_gradient(x), o), x}), t);
}

// ---------------------------------------------------------------- norms
static bool is_order_of_matrices(double ord) {
  return std::abs(ord) == 1 || std::abs(ord) == 2 || std::isinf(ord);
}
Array linalg::matrix_norm_fn::operator()(const Array& a, const MatrixNormOptions& o, Where w) const {
  constexpr const char* function = "linalg::matrix_norm";
  const Site site(w, function);
  const double ord = o.ord.value_or(0);
  if (o.ord && (o.nuclear || !is_order_of_matrices(ord)))
    throw Error(
        fmt::format("{}: order {}{}. The orders are 1, -1, 2, -2, infinity and -infinity. Leave it out "
                    "for the root of the sum of squares, or say nuclear alone.",
                    function, ord, o.nuclear ? " and nuclear" : ""));
  WeakType t;
  const Array x = matrices::operand(function, a, t);
  if (!o.nuclear && std::abs(ord) != 2) {
    NormOptions of_elements;
    of_elements.ord = o.ord;
    of_elements.axis = {-2, -1};
    of_elements.keepdims = o.keepdims;
    return api::cast(norm(x, of_elements), matrices::real_type(t));
  }
  const Array s = svdvals(x);
  const ReduceOptions last{.axis = -1};
  const Array r = o.nuclear ? sum(s, last) : ord > 0 ? max(s, last) : min(s, last);
  return api::cast(o.keepdims ? expand_dims(r, {-2, -1}) : r, matrices::real_type(t));
}

// ---------------------------------------------------------------- cond
Array linalg::cond_fn::operator()(const Array& a, const CondOptions& o, Where w) const {
  constexpr const char* function = "linalg::cond";
  const Site site(w, function);
  if (!is_order_of_matrices(o.ord))
    throw Error(fmt::format(
        "{}: order {}. The orders are 1, -1, 2, -2, infinity and -infinity. For other norms multiply "
        "those of the matrix and of its inverse.",
        function, o.ord));
  WeakType t;
  const Array x = matrices::operand(function, a, t);
  if (is_empty_matrix(x))
    throw ShapeError(
        fmt::format("{}: the matrices {} are empty. They have no singular values. Check the size first.",
                    function, to_string(type_of(a))));
  Array r;
  if (std::abs(o.ord) == 2) {
    const Array s = svdvals(x);
    const Array largest = max(s, -1), smallest = min(s, -1);
    r = o.ord > 0 ? primitive::div(largest, smallest) : primitive::div(smallest, largest);
  } else {
    matrices::need_square(function, a);
    r = primitive::mul(matrix_norm(x, {.ord = o.ord}), matrix_norm(inv(x), {.ord = o.ord}));
  }
  // as in NumPy: the inverse of a singular matrix may be NaN
  const Array singular = primitive::binary(op_and, primitive::binary(op_ne, r, r),
                                           all(primitive::binary(op_eq, x, x), {-2, -1}));
  return api::cast(
      primitive::select(singular, primitive::like(r, std::numeric_limits<double>::infinity()), r),
      matrices::real_type(t));
}

// ---------------------------------------------------------------- matrix_rank
Array linalg::matrix_rank_fn::operator()(const Array& a, const MatrixRankOptions& o, Where w) const {
  const Site site(w, "linalg::matrix_rank");
  if (type_of(a, "linalg::matrix_rank").shape.size() < 2)
    return primitive::cast(any(not_equal(a, 0)), DType::int32);
  WeakType t;
  const Array x = matrices::operand("linalg::matrix_rank", a, t);
  if (o.hermitian) matrices::need_square("linalg::matrix_rank", a);
  if (is_empty_matrix(x)) return zeros_of({matrices::batch_of(x.shape(), 2), DType::int32, false});
  const Array s = o.hermitian
                      ? abs(primitive::eigh(matrices::symmetrized(x), primitive::of_lower_triangle)[0])
                      : primitive::svd(x, 0)[0];
  const Array largest = max(s, {.axis = -1, .keepdims = true});
  const Array least =
      o.tol ? primitive::like(largest, *o.tol)
            : primitive::mul(largest, primitive::like(largest, sides_of(x) * epsilon_of(x.dtype())));
  return sum(
      primitive::cast(primitive::binary(op_gt, s, primitive::broadcast_to(least, s.shape())), DType::int32),
      -1);
}

// ---------------------------------------------------------------- lstsq
// |z|^2.
static Array squared_size(const Array& z) {
  const Array re = square(primitive::real(z));
  return is_complex(z.dtype()) ? primitive::add(re, square(primitive::imag(z))) : re;
}
linalg::LstsqResult linalg::lstsq_fn::operator()(const Array& a, const Array& b, const LstsqOptions& o,
                                                 Where w) const {
  const Site site(w, "linalg::lstsq");
  const Shape &sa = type_of(a, "linalg::lstsq").shape, &sb = type_of(b, "linalg::lstsq").shape;
  if (sa.size() != 2 || sb.empty() || sb.size() > 2 || sa[0] != sb[0])
    throw ShapeError(
        fmt::format("linalg::lstsq: {} with right-hand sides {}. A is a matrix, and B a vector or matrix "
                    "with as many rows. Use vmap for batches.",
                    to_string(type_of(a)), to_string(type_of(b))));
  WeakType t = api::to_inexact(api::promoted("linalg::lstsq", {&a, &b}));
  t.weak = false;
  const Array x = api::cast(a, api::computed(t));
  Array y = api::cast(b, api::computed(t));
  if (sb.size() == 1) y = primitive::reshape(y, {sb[0], 1});
  const WeakType real = matrices::real_type(t);
  const auto residuals = [](const Array& rest) { return sum(squared_size(rest), 0); };
  const auto shaped = [&](const Array& solution) {
    return api::cast(sb.size() == 1 ? primitive::reshape(solution, {sa[1]}) : solution, t);
  };
  if (is_empty_matrix(x)) {
    const Array none = zeros_of({{0}, real.dtype, false}), rank = zeros_of({{}, DType::int32, false});
    return {shaped(zeros_of({{sa[1], y.shape()[1]}, x.dtype(), false})), api::cast(residuals(y), real), rank,
            none};
  }
  double rcond = o.rcond.value_or(epsilon_of(x.dtype()) * sides_of(x));
  if (rcond < 0) rcond = epsilon_of(x.dtype());
  const Arrays r = primitive::svd(x, primitive::singular_vectors);
  const Array& s = r[0];
  const Array least = primitive::broadcast_to(
      primitive::mul(first_value(s), primitive::like(first_value(s), rcond)), s.shape());
  const Array counts = primitive::binary(op_and, primitive::binary(op_gt, s, primitive::like(s, 0)),
                                         primitive::binary(op_ge, s, least));
  const Array solution = matmul(matrices::adjoint(r[2]),
                                scaled_rows(inverse_where(counts, s), matmul(matrices::adjoint(r[1]), y)));
  return {shaped(solution), api::cast(residuals(primitive::sub(y, matmul(x, solution))), real),
          sum(primitive::cast(counts, DType::int32)), api::cast(s, real)};
}

}  // namespace shardarray
