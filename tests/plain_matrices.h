// Reference for linalg.h: matrices on the host by textbook methods, row-major, in double.
#pragma once
#include <cmath>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "op_host.h"

namespace shardarray::testing {

struct PlainMatrix {
  std::size_t m = 0, n = 0;
  std::vector<double> data = {};
  PlainMatrix(std::size_t rows, std::size_t columns) : m(rows), n(columns), data(rows * columns, 0.0) {}
  PlainMatrix(std::size_t rows, std::size_t columns, std::vector<double> values)
      : m(rows), n(columns), data(std::move(values)) {}
  double& at(std::size_t i, std::size_t j) { return data[i * n + j]; }
  double at(std::size_t i, std::size_t j) const { return data[i * n + j]; }
};

inline PlainMatrix identity_matrix(std::size_t n) {
  PlainMatrix r(n, n);
  for (std::size_t i = 0; i < n; i++) r.at(i, i) = 1;
  return r;
}
inline PlainMatrix transposed(const PlainMatrix& a) {
  PlainMatrix r(a.n, a.m);
  for (std::size_t i = 0; i < a.m; i++)
    for (std::size_t j = 0; j < a.n; j++) r.at(j, i) = a.at(i, j);
  return r;
}
inline PlainMatrix operator*(const PlainMatrix& a, const PlainMatrix& b) {
  PlainMatrix r(a.m, b.n);
  for (std::size_t i = 0; i < a.m; i++)
    for (std::size_t j = 0; j < b.n; j++)
      for (std::size_t k = 0; k < a.n; k++) r.at(i, j) += a.at(i, k) * b.at(k, j);
  return r;
}
inline PlainMatrix operator+(PlainMatrix a, const PlainMatrix& b) {
  for (std::size_t k = 0; k < a.data.size(); k++) a.data[k] += b.data[k];
  return a;
}
inline PlainMatrix operator*(double s, PlainMatrix a) {
  for (double& v : a.data) v *= s;
  return a;
}
inline PlainMatrix diagonal_matrix(const std::vector<double>& d) {
  PlainMatrix r(d.size(), d.size());
  for (std::size_t i = 0; i < d.size(); i++) r.at(i, i) = d[i];
  return r;
}

/// Matrix b of an array of matrices (the last `rank` dimensions; 1: a column).
inline PlainMatrix matrix_of(const HostArray& x, std::size_t b, std::size_t rank = 2) {
  const auto size = [&](std::size_t from_last) {
    return static_cast<std::size_t>(x.shape[x.shape.size() - from_last]);
  };
  const std::size_t m = rank == 2 ? size(2) : size(1), n = rank == 2 ? size(1) : 1;
  const auto first = x.data.begin() + static_cast<std::ptrdiff_t>(b * m * n);
  return {m, n, std::vector<double>(first, first + static_cast<std::ptrdiff_t>(m * n))};
}
/// f(b) of every matrix b of x, one after the other.
inline std::vector<double> of_matrices(const HostArray& x,
                                       const std::function<std::vector<double>(std::size_t)>& f) {
  std::size_t batch = 1;
  for (std::size_t d = 0; d + 2 < x.shape.size(); d++) batch *= static_cast<std::size_t>(x.shape[d]);
  std::vector<double> r;
  for (std::size_t b = 0; b < batch; b++) {
    const std::vector<double> one = f(b);
    r.insert(r.end(), one.begin(), one.end());
  }
  return r;
}

/// Gauss with row exchanges: L below the diagonal, U above.
struct PlainLu {
  PlainMatrix lu;
  std::vector<std::size_t> permutation;
  double sign = 1;
};
inline PlainLu plain_lu(const PlainMatrix& a) {
  PlainLu r{a, {}};
  for (std::size_t i = 0; i < a.m; i++) r.permutation.push_back(i);
  for (std::size_t k = 0; k < std::min(a.m, a.n); k++) {
    std::size_t best = k;
    for (std::size_t i = k; i < a.m; i++)
      if (std::abs(r.lu.at(i, k)) > std::abs(r.lu.at(best, k))) best = i;
    if (best != k) r.sign = -r.sign;
    std::swap(r.permutation[k], r.permutation[best]);
    for (std::size_t j = 0; j < a.n; j++) std::swap(r.lu.at(k, j), r.lu.at(best, j));
    for (std::size_t i = k + 1; i < a.m; i++) {
      r.lu.at(i, k) /= r.lu.at(k, k);
      for (std::size_t j = k + 1; j < a.n; j++) r.lu.at(i, j) -= r.lu.at(i, k) * r.lu.at(k, j);
    }
  }
  return r;
}
inline PlainMatrix plain_solve(const PlainMatrix& a, const PlainMatrix& b) {
  const PlainLu f = plain_lu(a);
  PlainMatrix x(b.m, b.n);
  for (std::size_t j = 0; j < b.n; j++) {
    for (std::size_t i = 0; i < b.m; i++) {
      x.at(i, j) = b.at(f.permutation[i], j);
      for (std::size_t k = 0; k < i; k++) x.at(i, j) -= f.lu.at(i, k) * x.at(k, j);
    }
    for (std::size_t i = b.m; i-- > 0;) {
      for (std::size_t k = i + 1; k < b.m; k++) x.at(i, j) -= f.lu.at(i, k) * x.at(k, j);
      x.at(i, j) /= f.lu.at(i, i);
    }
  }
  return x;
}
inline PlainMatrix plain_inverse(const PlainMatrix& a) { return plain_solve(a, identity_matrix(a.m)); }
inline double plain_det(const PlainMatrix& a) {
  const PlainLu f = plain_lu(a);
  double r = f.sign;
  for (std::size_t i = 0; i < a.m; i++) r *= f.lu.at(i, i);
  return r;
}
inline PlainMatrix plain_cholesky(const PlainMatrix& a) {
  PlainMatrix l(a.m, a.m);
  for (std::size_t i = 0; i < a.m; i++)
    for (std::size_t j = 0; j <= i; j++) {
      double s = a.at(i, j);
      for (std::size_t k = 0; k < j; k++) s -= l.at(i, k) * l.at(j, k);
      l.at(i, j) = i == j ? std::sqrt(s) : s / l.at(j, j);
    }
  return l;
}

/// Eigenvalues, rising, and eigenvectors as columns, by Jacobi's rotations.
struct PlainEigen {
  std::vector<double> values;
  PlainMatrix vectors;
};
inline PlainEigen plain_eigen(PlainMatrix a) {
  const std::size_t n = a.m;
  PlainMatrix v = identity_matrix(n);
  for (int sweep = 0; sweep < 60; sweep++)
    for (std::size_t p = 0; p < n; p++)
      for (std::size_t q = p + 1; q < n; q++) {
        if (std::abs(a.at(p, q)) < 1e-300) continue;
        const double angle = 0.5 * std::atan2(2 * a.at(p, q), a.at(q, q) - a.at(p, p));
        const double c = std::cos(angle), s = std::sin(angle);
        PlainMatrix turn = identity_matrix(n);
        turn.at(p, p) = turn.at(q, q) = c;
        turn.at(p, q) = s;
        turn.at(q, p) = -s;
        a = transposed(turn) * a * turn;
        v = v * turn;
      }
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < n; i++) order.push_back(i);
  std::sort(order.begin(), order.end(),
            [&](std::size_t i, std::size_t j) { return a.at(i, i) < a.at(j, j); });
  PlainEigen r{{}, PlainMatrix(n, n)};
  for (std::size_t j = 0; j < n; j++) {
    r.values.push_back(a.at(order[j], order[j]));
    for (std::size_t i = 0; i < n; i++) r.vectors.at(i, j) = v.at(i, order[j]);
  }
  return r;
}
/// f of the singular values of A: U f(S) V^T.
inline PlainMatrix plain_singular_function(const PlainMatrix& a, double (*f)(double)) {
  const PlainEigen e = plain_eigen(transposed(a) * a);
  std::vector<double> scale;
  for (const double v : e.values) {
    const double s = std::sqrt(std::max(v, 0.0));
    scale.push_back(f(s) / s);
  }
  return a * e.vectors * diagonal_matrix(scale) * transposed(e.vectors);
}
/// Householder's reflections: the signs are LAPACK's.
struct PlainQr {
  PlainMatrix q, r;
};
inline PlainQr plain_qr(const PlainMatrix& a) {
  PlainQr f{identity_matrix(a.m), a};
  for (std::size_t k = 0; k < std::min(a.m, a.n); k++) {
    double below = 0;
    for (std::size_t i = k + 1; i < a.m; i++) below += f.r.at(i, k) * f.r.at(i, k);
    if (below == 0) continue;
    const double head = f.r.at(k, k), size = std::sqrt(head * head + below);
    std::vector<double> v(a.m, 0.0);
    for (std::size_t i = k; i < a.m; i++) v[i] = f.r.at(i, k);
    v[k] += head < 0 ? -size : size;
    double norm = 0;
    for (const double x : v) norm += x * x;
    PlainMatrix reflection = identity_matrix(a.m);
    for (std::size_t i = 0; i < a.m; i++)
      for (std::size_t j = 0; j < a.m; j++) reflection.at(i, j) -= 2 * v[i] * v[j] / norm;
    f.r = reflection * f.r;
    f.q = f.q * reflection;
  }
  return f;
}
/// The series of exp.
inline PlainMatrix plain_exp(const PlainMatrix& a) {
  PlainMatrix r = identity_matrix(a.m), term = r;
  for (int k = 1; k < 80; k++) {
    term = (1.0 / k) * (term * a);
    r = r + term;
  }
  return r;
}

}  // namespace shardarray::testing
