// Matrix factorisations with orthogonal factors: qr, eigh, svd.
#include <fmt/core.h>

#include <algorithm>

#include "base/complex_parts.h"
#include "base/sizes.h"
#include "ops/complex.h"
#include "ops/matrices.h"
#include "shardarray/linalg.h"

namespace shardarray {

using namespace rules;

// Broadcasts a vector along rows; along columns.
static Array as_row(const Array& x) { return expand_dims(x, -2); }
static Array as_column(const Array& x) { return expand_dims(x, -1); }
// 1 / (x_j - x_i), with 0 on the diagonal.
static Array reciprocal_differences(const Array& differences) {
  const Array one = matrices::identity_like(differences);
  return primitive::sub(primitive::div(primitive::like(one, 1), primitive::add(differences, one)), one);
}

// ---------------------------------------------------------------- qr
static Types qr_type(const Call& c) {
  need_matrices(c, {2});
  const Shape &shape = c.in[0].shape, batch = matrices::batch_of(shape, 2);
  const std::int64_t m = shape[batch.size()], n = shape[batch.size() + 1];
  const std::int64_t k = c.attrs->bits != 0 ? m : std::min(m, n);
  return {{joined_shape(batch, {m, k}), c.in[0].dtype, false},
          {joined_shape(batch, {k, n}), c.in[0].dtype, false}};
}

struct QrChange {
  Array dq, dr;
};
// For A = Q R with square R: Q^H dQ is skew-Hermitian; its lower triangle is that of Q^H dA R^-1, and its diagonal the imaginary part of
// that, so that R keeps a real diagonal.
static QrChange thin_qr_change(const Array& q, const Array& r, const Array& da) {
  const Array change = primitive::triangular_solve(r, da, 0);
  const Array inside = matmul(matrices::adjoint(q), change), below = tril(inside, -1);
  Array skew = primitive::sub(below, matrices::adjoint(below));
  if (is_complex(q.dtype())) {
    const Array im = primitive::imag(inside);
    skew = primitive::add(
        skew, primitive::pair(primitive::like_whole(im, 0), primitive::mul(im, matrices::identity_like(im))));
  }
  return {primitive::add(matmul(q, primitive::sub(skew, inside)), change),
          matmul(primitive::sub(inside, skew), r)};
}
// For the columns of Q that complete its first n ones (arXiv:2409.13374, equations 32 and 33).
static Array completing_change(const Array& q, const Array& dq, std::int64_t n) {
  using namespace matrices;
  const std::int64_t m = size_from_last(q, 2);
  const Array first = columns(q, 0, n), top = rows(first, 0, n), bottom = rows(first, n, m);
  const Array z = adjoint(linalg::solve(adjoint(primitive::sub(top, identity_like(top))), adjoint(bottom)));
  const Array change = primitive::sub(rows(dq, n, m), matmul(z, rows(dq, 0, n)));
  return primitive::sub(matmul(dq, adjoint(z)),
                        matmul(primitive::add(first, matmul(columns(q, n, m), z)), adjoint(change)));
}

static Arrays qr_jvp(const JvpArgs& v) {
  using namespace matrices;
  const Array &q = v.out[0], &r = v.out[1], &da = v.tangents[0];
  const std::int64_t m = size_from_last(da, 2), n = size_from_last(da, 1);
  const std::size_t column = da.shape().size() - 1;
  if (m < n) {  // Q depends only on the first m columns
    const QrChange d = thin_qr_change(q, columns(r, 0, m), columns(da, 0, m));
    const Array parts[] = {d.dr, primitive::add(matmul(adjoint(d.dq), columns(v.in[0], m, n)),
                                                matmul(adjoint(q), columns(da, m, n)))};
    return {d.dq, primitive::concatenate(parts, column)};
  }
  const QrChange d = thin_qr_change(columns(q, 0, n), rows(r, 0, n), da);
  if (size_from_last(q, 1) == n) return {d.dq, d.dr};
  const Array parts[] = {d.dq, completing_change(q, d.dq, n)};
  return {primitive::concatenate(parts, column), extended(d.dr, m, n)};
}

// Q, R; attrs.bits = 1: square Q.
SHARDARRAY_OP op_qr{.name = "qr",
                    .form = Form::library,
                    .rule = [](const Call& c) { return matrices_rule(c, "ij->ik,kj"); },
                    .type = qr_type,
                    .jvp = qr_jvp,
                    .lower = [](const LowerArgs& l) { return library_call(l, "qr", {}); },
                    .whole_complex = true};

linalg::QrResult linalg::qr_fn::operator()(const Array& a, QrMode mode, Where w) const {
  const Site site(w, "linalg::qr");
  WeakType t;
  const Array x = matrices::operand("linalg::qr", a, t);
  Attrs attrs;
  attrs.bits = mode == QrMode::complete ? 1 : 0;
  const Arrays r = record_all(op_qr, {&x, 1}, std::make_shared<const Attrs>(std::move(attrs)), {});
  return {api::cast(r[0], t), api::cast(r[1], t)};
}

// ---------------------------------------------------------------- eigh
static Types eigh_type(const Call& c) {
  need_matrices(c, {2});
  Types r{{matrices::batch_of(c.in[0].shape, 1), part_type(c.in[0].dtype), false}};
  if ((c.attrs->bits & primitive::eigenvectors) != 0) r.push_back({c.in[0].shape, c.in[0].dtype, false});
  return r;
}

// First-order perturbation theory of distinct eigenvalues.
static Arrays eigh_jvp(const JvpArgs& v) {
  const std::uint64_t bits = v.node.attrs().bits;
  const bool has_vectors = (bits & primitive::eigenvectors) != 0;
  const Arrays again = has_vectors ? Arrays() : primitive::eigh(v.in[0], bits | primitive::eigenvectors);
  const Array &w = v.out[0], &vectors = has_vectors ? v.out[1] : again[1];
  const Array inside = matmul(matmul(matrices::adjoint(vectors), v.tangents[0]), vectors);
  Arrays r{primitive::real(matrices::diagonal_of(inside))};
  if (!has_vectors) return r;
  const Shape& square = inside.shape();
  const Array differences = primitive::sub(primitive::broadcast_to(as_row(w), square),
                                           primitive::broadcast_to(as_column(w), square));
  r.push_back(matmul(vectors, primitive::mul_real(inside, reciprocal_differences(differences))));
  return r;
}

// Eigenvalues, ascending, and optionally eigenvectors as columns, of a Hermitian matrix given by one triangle.
SHARDARRAY_OP op_eigh{
    .name = "eigh",
    .form = Form::library,
    .rule =
        [](const Call& c) {
          return matrices_rule(c, (c.attrs->bits & primitive::eigenvectors) != 0 ? "ij->k,ik" : "ij->k");
        },
    .type = eigh_type,
    .jvp = eigh_jvp,
    .lower =
        [](const LowerArgs& l) {
          const std::uint64_t bits = l.call.attrs->bits;
          return library_call(
              l, "eigh", {(bits & primitive::eigenvectors) != 0, (bits & primitive::of_lower_triangle) != 0});
        },
    .whole_complex = true};

Arrays primitive::eigh(const Array& a, std::uint64_t bits) {
  Attrs attrs;
  attrs.bits = bits;
  return record_all(op_eigh, {&a, 1}, std::make_shared<const Attrs>(std::move(attrs)), {});
}
static Arrays eigh_of(const char* function, const Array& a, const linalg::EighOptions& o,
                      std::uint64_t bits) {
  WeakType t;
  const Array x = matrices::square_operand(function, a, t);
  Arrays r = primitive::eigh(o.symmetrize_input ? matrices::symmetrized(x) : x,
                             bits | (o.lower ? primitive::of_lower_triangle : 0));
  r[0] = api::cast(r[0], matrices::real_type(t));
  if (r.size() > 1) r[1] = api::cast(r[1], t);
  return r;
}
linalg::EighResult linalg::eigh_fn::operator()(const Array& a, const EighOptions& o, Where w) const {
  const Site site(w, "linalg::eigh");
  const Arrays r = eigh_of("linalg::eigh", a, o, primitive::eigenvectors);
  return {r[0], r[1]};
}
Array linalg::eigvalsh_fn::operator()(const Array& a, const EighOptions& o, Where w) const {
  const Site site(w, "linalg::eigvalsh");
  return eigh_of("linalg::eigvalsh", a, o, 0)[0];
}

// ---------------------------------------------------------------- svd
static Types svd_type(const Call& c) {
  need_matrices(c, {2});
  const Shape &shape = c.in[0].shape, batch = matrices::batch_of(shape, 2);
  const std::int64_t m = shape[batch.size()], n = shape[batch.size() + 1], k = std::min(m, n);
  const bool is_full = (c.attrs->bits & primitive::full_matrices) != 0;
  const auto type = [&](std::initializer_list<std::int64_t> sizes) {
    return Type{joined_shape(batch, sizes), c.in[0].dtype, false};
  };
  Types r{{joined_shape(batch, {k}), part_type(c.in[0].dtype), false}};
  if ((c.attrs->bits & primitive::singular_vectors) == 0) return r;
  r.push_back(type({m, is_full ? m : k}));
  r.push_back(type({is_full ? n : k, n}));
  return r;
}

static const char* svd_letters(std::uint64_t bits) {
  return (bits & primitive::singular_vectors) == 0 ? "ij->k"
         : (bits & primitive::full_matrices) == 0  ? "ij->k,ik,kj"
                                                   : "ij->k,il,mj";
}

// The change of the factor `of` outside its column space: dA by, without its part in that space, divided by the singular values. `by` is
// the other factor.
static Array outside_change(const Array& of, const Array& by, const Array& da, const Array& s) {
  const Array change = matmul(da, by);
  const Array rest = primitive::sub(change, matmul(of, matmul(matrices::adjoint(of), change)));
  const Array sizes = primitive::broadcast_to(as_row(s), rest.shape());
  if (!is_complex(rest.dtype())) return primitive::div(rest, sizes);
  return primitive::pair(primitive::div(primitive::real(rest), sizes),
                         primitive::div(primitive::imag(rest), sizes));
}

// The phase change of U's columns: i times the imaginary part of the diagonal of U^H dA V, divided by the singular values; 0 where these
// are 0. V keeps its phases.
static Array phase_change(const Array& u, const Array& diagonal, const Array& s) {
  const Array is_zero = primitive::binary(op_eq, s, primitive::like(s, 0));
  const Array speed = primitive::select(
      is_zero, primitive::like(s, 0),
      primitive::div(primitive::imag(diagonal), primitive::select(is_zero, primitive::like(s, 1), s)));
  const Array by = primitive::broadcast_to(as_row(speed), u.shape());
  return primitive::pair(primitive::neg(primitive::mul(primitive::imag(u), by)),
                         primitive::mul(primitive::real(u), by));
}

// First-order perturbation theory of distinct singular values.
static Arrays svd_jvp(const JvpArgs& v) {
  using namespace matrices;
  const std::uint64_t bits = v.node.attrs().bits;
  const Array& da = v.tangents[0];
  const std::int64_t m = size_from_last(da, 2), n = size_from_last(da, 1);
  const bool has_factors = (bits & primitive::singular_vectors) != 0;
  if (has_factors && (bits & primitive::full_matrices) != 0 && m != n)
    throw Error(
        fmt::format("grad: the factors of svd with full matrices of {} have no derivative. What completes "
                    "them is not determined. Use full_matrices = false.",
                    to_string(type_of(v.in[0]))));
  const Arrays again = has_factors ? Arrays() : primitive::svd(v.in[0], primitive::singular_vectors);
  const Array &s = v.out[0], &u = has_factors ? v.out[1] : again[1],
              right = adjoint(has_factors ? v.out[2] : again[2]);
  const Array inside = matmul(matmul(adjoint(u), da), right), diagonal = diagonal_of(inside);
  if (!has_factors) return {primitive::real(diagonal)};
  const Shape& square = inside.shape();
  const Array of_columns = primitive::broadcast_to(as_row(s), square),
              of_rows = primitive::broadcast_to(as_column(s), square);
  const Array weights = reciprocal_differences(
      primitive::mul(primitive::add(of_columns, of_rows), primitive::sub(of_columns, of_rows)));
  const auto change = [&](const Array& factor, const Array& values) {
    const Array x = primitive::mul_real(inside, values);
    return matmul(factor, primitive::mul_real(primitive::add(x, adjoint(x)), weights));
  };
  Array du = change(u, of_columns), dv = change(right, of_rows);
  if (is_complex(du.dtype())) du = primitive::add(du, phase_change(u, diagonal, s));
  if (m > n) du = primitive::add(du, outside_change(u, right, da, s));
  if (m < n) dv = primitive::add(dv, outside_change(right, u, adjoint(da), s));
  return {primitive::real(diagonal), du, adjoint(dv)};
}

// Singular values, descending, and optionally U and V^H, which are square with full_matrices.
SHARDARRAY_OP op_svd{.name = "svd",
                     .form = Form::library,
                     .rule = [](const Call& c) { return matrices_rule(c, svd_letters(c.attrs->bits)); },
                     .type = svd_type,
                     .jvp = svd_jvp,
                     .lower = [](const LowerArgs& l) { return library_call(l, "svd", {}); },
                     .whole_complex = true};

Arrays primitive::svd(const Array& a, std::uint64_t bits) {
  Attrs attrs;
  attrs.bits = bits;
  return record_all(op_svd, {&a, 1}, std::make_shared<const Attrs>(std::move(attrs)), {});
}
linalg::SvdResult linalg::svd_fn::operator()(const Array& a, const SvdOptions& o, Where w) const {
  const Site site(w, "linalg::svd");
  WeakType t;
  const Array x = matrices::operand("linalg::svd", a, t);
  const Arrays r = primitive::svd(
      x, o.compute_uv ? primitive::singular_vectors | (o.full_matrices ? primitive::full_matrices : 0) : 0);
  const Array s = api::cast(r[0], matrices::real_type(t));
  if (!o.compute_uv) return {Array(), s, Array()};
  return {api::cast(r[1], t), s, api::cast(r[2], t)};
}
Array linalg::svdvals_fn::operator()(const Array& a, Where w) const {
  const Site site(w, "linalg::svdvals");
  WeakType t;
  const Array s = primitive::svd(matrices::operand("linalg::svdvals", a, t), 0)[0];
  return api::cast(s, matrices::real_type(t));
}

}  // namespace shardarray
