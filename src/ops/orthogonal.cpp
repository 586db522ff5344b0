// Factorisations of matrices with orthogonal factors: qr, eigh, svd.
#include <fmt/core.h>

#include <algorithm>

#include "base/sizes.h"
#include "ops/matrices.h"
#include "shardarray/linalg.h"

namespace shardarray {

using namespace rules;

// A vector as the factors of columns; of rows.
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
// Of A = Q R with a square R: Q^T dQ is skew, its lower triangle that of Q^T dA R^-1.
static QrChange thin_qr_change(const Array& q, const Array& r, const Array& da) {
  const Array change = primitive::triangular_solve(r, da, 0);
  const Array inside = matmul(matrices::turned(q), change), below = tril(inside, -1);
  const Array skew = primitive::sub(below, matrices::turned(below));
  return {primitive::add(matmul(q, primitive::sub(skew, inside)), change),
          matmul(primitive::sub(inside, skew), r)};
}
// Of the columns of Q that complete its first n ones (arXiv:2409.13374, equations 32 and 33).
static Array completing_change(const Array& q, const Array& dq, std::int64_t n) {
  using namespace matrices;
  const std::int64_t m = size_from_last(q, 2);
  const Array first = columns(q, 0, n), top = rows(first, 0, n), bottom = rows(first, n, m);
  const Array z = turned(linalg::solve(turned(primitive::sub(top, identity_like(top))), turned(bottom)));
  const Array change = primitive::sub(rows(dq, n, m), matmul(z, rows(dq, 0, n)));
  return primitive::sub(matmul(dq, turned(z)),
                        matmul(primitive::add(first, matmul(columns(q, n, m), z)), turned(change)));
}

static Arrays qr_jvp(const JvpArgs& v) {
  using namespace matrices;
  const Array &q = v.out[0], &r = v.out[1], &da = v.tangents[0];
  const std::int64_t m = size_from_last(da, 2), n = size_from_last(da, 1);
  const std::size_t column = da.shape().size() - 1;
  if (m < n) {  // the square in front decides about Q
    const QrChange d = thin_qr_change(q, columns(r, 0, m), columns(da, 0, m));
    const Array parts[] = {d.dr, primitive::add(matmul(turned(d.dq), columns(v.in[0], m, n)),
                                                matmul(turned(q), columns(da, m, n)))};
    return {d.dq, primitive::concatenate(parts, column)};
  }
  const QrChange d = thin_qr_change(columns(q, 0, n), rows(r, 0, n), da);
  if (size_from_last(q, 1) == n) return {d.dq, d.dr};
  const Array parts[] = {d.dq, completing_change(q, d.dq, n)};
  return {primitive::concatenate(parts, column), extended(d.dr, m, n)};
}

// Q, R; attrs.bits 1: Q is square.
SHARDARRAY_OP op_qr{.name = "qr",
                    .form = Form::library,
                    .rule = [](const Call& c) { return matrices_rule(c, "ij->ik,kj"); },
                    .type = qr_type,
                    .jvp = qr_jvp,
                    .lower = [](const LowerArgs& l) { return library_call(l, "qr", {}); }};

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
  Types r{{matrices::batch_of(c.in[0].shape, 1), c.in[0].dtype, false}};
  if ((c.attrs->bits & primitive::eigenvectors) != 0) r.push_back({c.in[0].shape, c.in[0].dtype, false});
  return r;
}

// The perturbation theory of eigenvalues that differ.
static Arrays eigh_jvp(const JvpArgs& v) {
  const std::uint64_t bits = v.node.attrs().bits;
  const bool has_vectors = (bits & primitive::eigenvectors) != 0;
  const Arrays again = has_vectors ? Arrays() : primitive::eigh(v.in[0], bits | primitive::eigenvectors);
  const Array &w = v.out[0], &vectors = has_vectors ? v.out[1] : again[1];
  const Array inside = matmul(matmul(matrices::turned(vectors), v.tangents[0]), vectors);
  Arrays r{matrices::diagonal_of(inside)};
  if (!has_vectors) return r;
  const Shape& square = inside.shape();
  const Array differences = primitive::sub(primitive::broadcast_to(as_row(w), square),
                                           primitive::broadcast_to(as_column(w), square));
  r.push_back(matmul(vectors, primitive::mul(reciprocal_differences(differences), inside)));
  return r;
}

// Eigenvalues, rising, and if asked for eigenvectors as columns, of a symmetric matrix of which one triangle is read.
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
        }};

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
  for (Array& y : r) y = api::cast(y, t);
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
  Types r{type({k})};
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

// What dA gives beside the space of the factor `of`, whose partner is `by`: dA by, less its part in that space, by the singular
// values.
static Array outside_change(const Array& of, const Array& by, const Array& da, const Array& s) {
  const Array change = matmul(da, by);
  const Array rest = primitive::sub(change, matmul(of, matmul(matrices::turned(of), change)));
  return primitive::div(rest, primitive::broadcast_to(as_row(s), rest.shape()));
}

// The perturbation theory of singular values that differ.
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
              right = turned(has_factors ? v.out[2] : again[2]);
  const Array inside = matmul(matmul(turned(u), da), right);
  if (!has_factors) return {diagonal_of(inside)};
  const Shape& square = inside.shape();
  const Array of_columns = primitive::broadcast_to(as_row(s), square),
              of_rows = primitive::broadcast_to(as_column(s), square);
  const Array weights = reciprocal_differences(
      primitive::mul(primitive::add(of_columns, of_rows), primitive::sub(of_columns, of_rows)));
  const auto change = [&](const Array& factor, const Array& values) {
    const Array x = primitive::mul(values, inside);
    return matmul(factor, primitive::mul(weights, primitive::add(x, turned(x))));
  };
  Array du = change(u, of_columns), dv = change(right, of_rows);
  if (m > n) du = primitive::add(du, outside_change(u, right, da, s));
  if (m < n) dv = primitive::add(dv, outside_change(right, u, turned(da), s));
  return {diagonal_of(inside), du, turned(dv)};
}

// Singular values, falling, and if asked for U and V^T, which are square with full_matrices.
SHARDARRAY_OP op_svd{.name = "svd",
                     .form = Form::library,
                     .rule = [](const Call& c) { return matrices_rule(c, svd_letters(c.attrs->bits)); },
                     .type = svd_type,
                     .jvp = svd_jvp,
                     .lower = [](const LowerArgs& l) { return library_call(l, "svd", {}); }};

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
  if (!o.compute_uv) return {Array(), api::cast(r[0], t), Array()};
  return {api::cast(r[1], t), api::cast(r[0], t), api::cast(r[2], t)};
}
Array linalg::svdvals_fn::operator()(const Array& a, Where w) const {
  const Site site(w, "linalg::svdvals");
  WeakType t;
  return api::cast(primitive::svd(matrices::operand("linalg::svdvals", a, t), 0)[0], t);
}

}  // namespace shardarray
