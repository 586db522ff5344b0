// Determinants: slogdet, det.
#include <limits>

#include "base/complex_parts.h"
#include "ops/complex.h"
#include "ops/matrices.h"
#include "shardarray/linalg.h"

namespace shardarray {

using namespace rules;

static Array vector_element(const Array& x, std::int64_t k) {
  const Shape& shape = x.shape();
  return primitive::reshape(primitive::slice_dim(x, shape.size() - 1, k, k + 1),
                            matrices::batch_of(shape, 1));
}
static Array matrix_element(const Array& x, std::int64_t row, std::int64_t column) {
  return vector_element(vector_element(matrices::turned(x), row), column);
}
static Array number_of(const Array& condition) {
  return primitive::reduce(Reducer::sum, primitive::cast(condition, DType::int32),
                           {static_cast<std::int64_t>(condition.shape().size()) - 1});
}
static Array any_of_last(const Array& condition) { return greater(number_of(condition), 0); }
// -1 for odd n, else 1.
static Array sign_of_parity(const Array& n, DType t) {
  const Array odd = primitive::cast(remainder(n, 2), t);
  return primitive::sub(primitive::like(odd, 1), primitive::mul(odd, primitive::like(odd, 2)));
}
// The number of exchanged rows.
static Array exchanges(const Array& pivots) {
  return number_of(primitive::binary(
      op_ne, pivots, primitive::iota(pivots.shape(), pivots.shape().size() - 1, DType::int32)));
}
static Array sum_of_last(const Array& x) {
  return primitive::reduce(Reducer::sum, x, {static_cast<std::int64_t>(x.shape().size()) - 1});
}
static Array trace_of(const Array& x) { return sum_of_last(matrices::diagonal_of(x)); }

// ---------------------------------------------------------------- slogdet
// log |det A| as a value with the derivative trace(A^-1 dA), computed from the same factors. For complex matrices the value is complex, and
// the imaginary part of its derivative is that of the determinant's phase.
SHARDARRAY_OP op_log_det{
    .name = "log_det",
    .form = Form::view,
    .rule = [](const Call& c) { return matrices_rule(c, ",ij,i,ij->"); },
    .jvp =
        [](const JvpArgs& v) {
          const Array& da = v.tangents[3];
          return Arrays{da.has_value() ? trace_of(primitive::lu_solve(v.in[1], v.in[2], da, v.in[3]))
                                       : Array()};
        },
    .trait = Trait::alias};

static linalg::SlogdetResult small_slogdet(const Array& det) {
  return {stop_gradient(sign(det)), log(abs(det))};
}
static Array det_of_two(const Array& a) {
  const auto x = [&](std::int64_t i, std::int64_t j) { return matrix_element(a, i, j); };
  return primitive::sub(primitive::mul(x(0, 0), x(1, 1)), primitive::mul(x(0, 1), x(1, 0)));
}
// e^(i x).
static Array turn_of(const Array& x) {
  return primitive::pair(primitive::unary(op_cos, x), primitive::unary(op_sin, x));
}
static linalg::SlogdetResult slogdet_of(const Array& a) {
  const bool is_pair = is_complex(a.dtype());
  if (a.shape().back() == 1 && !is_pair) return small_slogdet(matrix_element(a, 0, 0));
  const Arrays factors = primitive::lu(stop_gradient(a));
  const Array u = matrices::diagonal_of(factors[0]);
  const Array zero = primitive::like(u, 0), is_zero = any_of_last(primitive::binary(op_eq, u, zero));
  Array odd = exchanges(factors[1]);
  if (!is_pair) odd = primitive::add(odd, number_of(primitive::binary(op_lt, u, zero)));
  const Array size = sum_of_last(log(abs(u)));
  const Array log_det =
      primitive::select(is_zero, primitive::like(size, -std::numeric_limits<double>::infinity()), size);
  Array sign_of_det = sign_of_parity(odd, size.dtype());
  if (is_pair) sign_of_det = primitive::mul_real(prod(sign(u), {.axis = -1}), sign_of_det);
  sign_of_det = primitive::select(is_zero, primitive::like(sign_of_det, 0), sign_of_det);
  const auto known = [&](const Array& value) {
    return record(op_log_det, {value, factors[0], factors[1], a});
  };
  if (!is_pair) return {sign_of_det, known(log_det)};
  const Array turning = known(primitive::pair(log_det, primitive::like(log_det, 0)));
  return {primitive::mul(sign_of_det, turn_of(primitive::imag(turning))), primitive::real(turning)};
}
linalg::SlogdetResult linalg::slogdet_fn::operator()(const Array& a, Where w) const {
  const Site site(w, "linalg::slogdet");
  WeakType t;
  const SlogdetResult r = slogdet_of(matrices::square_operand("linalg::slogdet", a, t));
  return {api::cast(r.sign, t), api::cast(r.logabsdet, matrices::real_type(t))};
}

// ---------------------------------------------------------------- det
// The sum of the cofactors of A times dA, where A may have rank n - 1: A^-1 dA det(A) by the factors of A, with the last pivot, which may
// be 0, taken out of the product. At lower rank all cofactors are 0.
static Array cofactors_times(const Array& a, const Array& da) {
  const std::int64_t n = a.shape().back();
  if (n == 0) return zeros_of({matrices::batch_of(a.shape(), 2), a.dtype(), false});  // it is always 1
  if (n == 1) return matrix_element(da, 0, 0);
  const Arrays factors = primitive::lu(a);
  const Shape &matrix = a.shape(), vector = factors[1].shape();
  const std::size_t rank = matrix.size();
  const auto batch = static_cast<std::int64_t>(rank) - 2;
  const auto over_matrix = [&](const Array& x) {
    Shape one = x.shape();
    one.push_back(1);
    one.push_back(1);
    return primitive::broadcast_to(primitive::reshape(x, one), matrix);
  };
  const Array u = matrices::diagonal_of(factors[0]);
  const Array sign = sign_of_parity(exchanges(factors[1]), part_type(a.dtype()));
  const Array products = cumprod(u, -1);
  const Array whole = primitive::mul_real(vector_element(products, n - 1), sign),
              but_last = primitive::mul_real(vector_element(products, n - 2), sign);
  const auto is_last = [&](std::size_t dim) {
    const Array at = primitive::iota(matrix, dim, DType::int32);
    return primitive::binary(op_eq, at, primitive::like(at, static_cast<double>(n - 1)));
  };
  const Array corner = primitive::binary(op_and, is_last(rank - 2), is_last(rank - 1));
  const Array lu = primitive::select(
      corner, over_matrix(primitive::div(primitive::like(but_last, 1), but_last)), factors[0]);
  Shape ones = vector;
  ones.push_back(1);
  const std::uint64_t upper = primitive::left_side;
  const Array probe = primitive::triangular_solve(lu, primitive::full(ones, a.dtype(), 1), upper);
  const Array is_finite = primitive::unary(op_is_finite, primitive::reshape(probe, vector));
  const Array lacks = over_matrix(any_of_last(logical_not(is_finite)));
  const Array zero = zeros_of(type_of(da));
  Array x = primitive::take(primitive::select(lacks, zero, da), factors[2], batch, 1);
  x = primitive::triangular_solve(
      lu, x, primitive::left_side | primitive::lower_triangle | primitive::unit_diagonal);
  x = primitive::select(is_last(rank - 2), x, primitive::mul(x, over_matrix(whole)));
  x = primitive::triangular_solve(lu, x, upper);
  return trace_of(primitive::select(lacks, zero, x));
}

// det A as a value with the derivative by cofactors, of all orders.
SHARDARRAY_OP op_det{
    .name = "det",
    .form = Form::view,
    .rule = [](const Call& c) { return matrices_rule(c, ",ij->"); },
    .jvp =
        [](const JvpArgs& v) {
          return Arrays{v.tangents[1].has_value() ? cofactors_times(v.in[1], v.tangents[1]) : Array()};
        },
    .trait = Trait::alias};

static Array det_of_three(const Array& a) {
  const auto x = [&](std::int64_t i, std::int64_t j) { return matrix_element(a, i, j); };
  const auto line = [&](std::int64_t i, std::int64_t j, std::int64_t k) {
    return primitive::mul(primitive::mul(x(0, i), x(1, j)), x(2, k));
  };
  const Array rising = primitive::add(primitive::add(line(0, 1, 2), line(1, 2, 0)), line(2, 0, 1));
  return primitive::sub(primitive::sub(primitive::sub(rising, line(2, 1, 0)), line(0, 2, 1)), line(1, 0, 2));
}
static Array det_of(const Array& a) {
  const std::int64_t n = a.shape().back();
  if (n == 2) return det_of_two(a);
  if (n == 3) return det_of_three(a);
  const linalg::SlogdetResult r = slogdet_of(stop_gradient(a));
  return record(op_det, {primitive::mul_real(r.sign, exp(r.logabsdet)), a});
}
Array linalg::det_fn::operator()(const Array& a, Where w) const {
  const Site site(w, "linalg::det");
  WeakType t;
  return api::cast(det_of(matrices::square_operand("linalg::det", a, t)), t);
}

}  // namespace shardarray
