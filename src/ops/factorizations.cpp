// Factorisations of matrices: cholesky, lu.
#include "base/sizes.h"
#include "ops/complex.h"
#include "ops/matrices.h"
#include "shardarray/linalg.h"

namespace shardarray {

using namespace rules;

// ---------------------------------------------------------------- cholesky
// dL = L phi(L^-1 dA L^-H), where phi is the lower triangle with half the diagonal (Murray 2016, arXiv:1602.07527).
static Arrays cholesky_jvp(const JvpArgs& v) {
  const Array &l = v.out[0], one = matrices::identity_like(l);
  const Array right = primitive::triangular_solve(primitive::conj(l), v.tangents[0],
                                                  primitive::lower_triangle | primitive::transposed_matrix);
  const Array both =
      tril(primitive::triangular_solve(l, right, primitive::left_side | primitive::lower_triangle));
  return {matmul(l, primitive::div(both, primitive::add(one, primitive::like(one, 1))))};
}

// L with A = L L^H; reads the lower triangle. The derivative assumes a Hermitian A.
SHARDARRAY_OP op_cholesky{.name = "cholesky",
                          .form = Form::library,
                          .rule = [](const Call& c) { return matrices_rule(c, "ij->ik"); },
                          .type =
                              [](const Call& c) {
                                need_matrices(c, {2});
                                return Types{c.in[0]};
                              },
                          .jvp = cholesky_jvp,
                          .lower = [](const LowerArgs& l) { return library_call(l, "cholesky", {}); },
                          .whole_complex = true};

Array linalg::cholesky_fn::operator()(const Array& a, const CholeskyOptions& o, Where w) const {
  const Site site(w, "linalg::cholesky");
  WeakType t;
  const Array x = matrices::square_operand("linalg::cholesky", a, t);
  const Array l = record(op_cholesky, {o.symmetrize_input ? matrices::symmetrized(x) : x});
  return api::cast(o.upper ? matrices::adjoint(l) : l, t);
}

// ---------------------------------------------------------------- lu
static Types lu_type(const Call& c) {
  need_matrices(c, {2});
  const Shape &shape = c.in[0].shape, batch = matrices::batch_of(shape, 2);
  const std::int64_t m = shape[batch.size()], n = shape[batch.size() + 1];
  return {c.in[0],
          {joined_shape(batch, {std::min(m, n)}), DType::int32, false},
          {joined_shape(batch, {m}), DType::int32, false}};
}

// L^-1 dA U^-1 = L^-1 dL + dU U^-1: the first summand is its strict lower triangle, the second the rest. Factors of non-square matrices are
// completed by the identity.
static Arrays lu_jvp(const JvpArgs& v) {
  const Array& packed = v.out[0];
  const std::int64_t m = matrices::size_from_last(packed, 2), n = matrices::size_from_last(packed, 1),
                     k = std::min(m, n);
  const auto batch = static_cast<std::int64_t>(packed.shape().size()) - 2;
  const Array change = primitive::take(v.tangents[0], v.out[2], batch, 1);  // with its rows permuted
  const Array below = matrices::extended(tril(matrices::columns(packed, 0, k), -1), m, m);
  const Array l = primitive::add(below, matrices::identity_like(below));
  const Array above = matrices::extended(triu(matrices::rows(packed, 0, k)), n, n);
  const Array rest = primitive::sub(
      matrices::identity_like(above),
      matrices::extended(matrices::identity_like(matrices::columns(matrices::rows(packed, 0, k), 0, k)), n,
                         n));
  const Array u = primitive::add(above, rest);
  const Array left = primitive::triangular_solve(
      l, change, primitive::left_side | primitive::lower_triangle | primitive::unit_diagonal);
  const Array both = primitive::triangular_solve(u, left, 0);
  return {primitive::add(matmul(l, tril(both, -1)), matmul(triu(both), u)), Array(), Array()};
}

// A [.., m, n] -> packed L and U, row exchanges, the resulting permutation: see LuResult.
SHARDARRAY_OP op_lu{.name = "lu",
                    .form = Form::library,
                    .rule = [](const Call& c) { return matrices_rule(c, "ij->ij,k,i"); },
                    .type = lu_type,
                    .jvp = lu_jvp,
                    .lower = [](const LowerArgs& l) { return library_call(l, "lu", {}); },
                    .whole_complex = true};

Arrays primitive::lu(const Array& a) { return record_all(op_lu, {&a, 1}, nullptr, {}); }

linalg::LuResult linalg::lu_fn::operator()(const Array& a, Where w) const {
  const Site site(w, "linalg::lu");
  WeakType t;
  const Arrays r = primitive::lu(matrices::operand("linalg::lu", a, t));
  return {api::cast(r[0], t), r[1], r[2]};
}

}  // namespace shardarray
