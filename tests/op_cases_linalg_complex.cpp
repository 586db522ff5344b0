// Rows of op_cases.h: complex matrices. X + i Y is embedded in the real matrix [[X, -Y], [Y, X]], whose products, inverses and functions of
// eigenvalues or singular values are the references.
#include <complex>

#include "op_cases.h"
#include "plain_matrices.h"
#include "shardarray/complex.h"
#include "shardarray/convolution.h"
#include "shardarray/linalg.h"
#include "shardarray/vmap.h"

namespace shardarray::testing {
namespace complex_matrices {

using S = std::span<const Array>;
using H = const Hosts&;

const OpInput complex_squares{{10, 4, 4}, -1, 1};
const OpInput complex_sides{{10, 4, 2}, -1, 1};

PlainMatrix embedded(const PlainMatrix& x, const PlainMatrix& y) {
  PlainMatrix r(2 * x.m, 2 * x.n);
  for (std::size_t i = 0; i < x.m; i++)
    for (std::size_t j = 0; j < x.n; j++) {
      r.at(i, j) = r.at(x.m + i, x.n + j) = x.at(i, j);
      r.at(x.m + i, j) = y.at(i, j);
      r.at(i, x.n + j) = -y.at(i, j);
    }
  return r;
}
/// Of the matrix that is embedded in r: both parts count, differently, and elements too, so that an exchange would show.
Numbers weighed(const PlainMatrix& r) {
  Numbers values;
  for (std::size_t i = 0; i < r.m / 2; i++)
    for (std::size_t j = 0; j < r.n / 2; j++) values.push_back(r.at(i, j) + 0.75 * r.at(r.m / 2 + i, j));
  return values;
}
Array weighed(const Array& z) { return real(z) + 0.75 * imag(z); }
Array adjoint(const Array& z) { return conj(swapaxes(z, -1, -2)); }

Array with_heavy_diagonal(const Array& z) {
  return z + 4 * eye(z.shape()[1], z.shape()[2], 0, real(z).dtype());
}
PlainMatrix with_heavy_diagonal(const PlainMatrix& x) {
  PlainMatrix r = x;
  for (std::size_t i = 0; i < std::min(x.m, x.n); i++) r.at(i, i) += 4;
  return r;
}
/// Hermitian, with eigenvalues that are positive and differ.
Array hermitian(const Array& z) {
  const DType t = real(z).dtype();
  const std::int64_t n = z.shape().back();
  return with_heavy_diagonal((z + adjoint(z)) / 2) + eye(n, std::nullopt, 0, t) * arange(n).astype(t);
}
/// The same of what is embedded.
PlainMatrix hermitian(const PlainMatrix& a) {
  PlainMatrix r = 0.5 * (a + transposed(a));
  for (std::size_t i = 0; i < r.m; i++) r.at(i, i) += 4 + static_cast<double>(i % (r.m / 2));
  return r;
}

/// A row of A = x[0] + i x[1] of [10, m, n], with 4 on its diagonal.
using OfMatrix = std::function<Numbers(const PlainMatrix&)>;
OpCase row_of(std::string name, std::function<Array(const Array&)> f, const OfMatrix& plain,
              OpInput in = complex_squares, double tolerance = 2e-5) {
  return {std::move(name),
          [f = std::move(f)](S x) { return f(with_heavy_diagonal(complex(x[0], x[1]))); },
          [plain](H x) {
            return of_matrices(x[0], [&](std::size_t b) {
              return plain(embedded(with_heavy_diagonal(matrix_of(x[0], b)), matrix_of(x[1], b)));
            });
          },
          {in, in},
          true,
          tolerance};
}
/// The same of A and B = x[2] + i x[3].
using OfMatrices = std::function<Numbers(const PlainMatrix&, const PlainMatrix&)>;
OpCase equation_row(std::string name, std::function<Array(const Array&, const Array&)> f,
                    const OfMatrices& plain) {
  return {
      std::move(name),
      [f = std::move(f)](S x) { return f(with_heavy_diagonal(complex(x[0], x[1])), complex(x[2], x[3])); },
      [plain](H x) {
        return of_matrices(x[0], [&](std::size_t b) {
          return plain(embedded(with_heavy_diagonal(matrix_of(x[0], b)), matrix_of(x[1], b)),
                       embedded(matrix_of(x[2], b), matrix_of(x[3], b)));
        });
      },
      {complex_squares, complex_squares, complex_sides, complex_sides},
      true,
      2e-5};
}
/// The lower triangle of what is embedded.
PlainMatrix lower_of_embedded(const PlainMatrix& a) {
  PlainMatrix r = a;
  const std::size_t n = a.m / 2;
  for (std::size_t i = 0; i < a.m; i++)
    for (std::size_t j = 0; j < a.n; j++)
      if (j % n > i % n) r.at(i, j) = 0;
  return r;
}

}  // namespace complex_matrices

using namespace complex_matrices;

static void add_complex_equations(Cases& c) {
  c.push_back(equation_row(
      "complex linalg::solve", [](const Array& a, const Array& b) { return weighed(linalg::solve(a, b)); },
      [](const PlainMatrix& a, const PlainMatrix& b) { return weighed(plain_solve(a, b)); }));
  c.push_back(row_of(
      "complex linalg::inv", [](const Array& a) { return weighed(linalg::inv(a)); },
      [](const PlainMatrix& a) { return weighed(plain_inverse(a)); }));
  c.push_back(equation_row(
      "complex linalg::triangular_solve",
      [](const Array& a, const Array& b) {
        return weighed(linalg::triangular_solve(
            a, b, {.left_side = true, .lower = true, .transpose_a = true, .conjugate_a = true}));
      },
      [](const PlainMatrix& a, const PlainMatrix& b) {
        return weighed(plain_solve(transposed(lower_of_embedded(a)), b));
      }));
  c.push_back(equation_row(
      "complex linalg::solve_triangular",
      [](const Array& a, const Array& b) { return weighed(linalg::solve_triangular(a, b, {.lower = true})); },
      [](const PlainMatrix& a, const PlainMatrix& b) {
        return weighed(plain_solve(lower_of_embedded(a), b));
      }));
  c.push_back({"complex linalg::lstsq",
               [](S x) {
                 return vmap([](const Array& a, const Array& b) { return weighed(linalg::lstsq(a, b).x); })(
                     with_heavy_diagonal(complex(x[0], x[1])), complex(x[2], x[3]));
               },
               [](H x) {
                 return of_matrices(x[0], [&](std::size_t b) {
                   const PlainMatrix a =
                       embedded(with_heavy_diagonal(matrix_of(x[0], b)), matrix_of(x[1], b));
                   return weighed(plain_solve(
                       transposed(a) * a, transposed(a) * embedded(matrix_of(x[2], b), matrix_of(x[3], b))));
                 });
               },
               {{{10, 5, 3}, -1, 1}, {{10, 5, 3}, -1, 1}, {{10, 5, 2}, -1, 1}, {{10, 5, 2}, -1, 1}},
               true,
               2e-5});
}

static void add_complex_factors(Cases& c) {
  // Its own factor gives the inverse.
  c.push_back(row_of(
      "complex linalg::cholesky",
      [](const Array& a) {
        const Array l = linalg::cholesky(hermitian(a)), one = eye(4, std::nullopt, 0, l.dtype());
        const Array inverse = linalg::solve_triangular(l, broadcast_to(one, l.shape()), {.lower = true});
        return weighed(matmul(adjoint(inverse), inverse));
      },
      [](const PlainMatrix& a) { return weighed(plain_inverse(hermitian(a))); }));
  c.push_back(row_of(
      "complex linalg::lu",
      [](const Array& a) {
        const Array lu = linalg::lu(4 * a).lu;  // the diagonal is the largest: nothing is exchanged
        const Array u = triu(lu), l = tril(lu, -1) + eye(4, std::nullopt, 0, real(lu).dtype());
        return weighed(matmul(u, l));
      },
      [](const PlainMatrix& a) {  // L of 2 x 2 blocks is the one of numbers: rows and columns side by side
        const std::size_t n = a.m / 2;
        std::vector<std::vector<std::complex<double>>> z(n, std::vector<std::complex<double>>(n));
        for (std::size_t i = 0; i < n; i++)
          for (std::size_t j = 0; j < n; j++) z[i][j] = 4. * std::complex(a.at(i, j), a.at(n + i, j));
        for (std::size_t k = 0; k < n; k++)
          for (std::size_t i = k + 1; i < n; i++) {
            z[i][k] /= z[k][k];
            for (std::size_t j = k + 1; j < n; j++) z[i][j] -= z[i][k] * z[k][j];
          }
        Numbers r;
        for (std::size_t i = 0; i < n; i++)
          for (std::size_t j = 0; j < n; j++) {
            std::complex<double> s = j >= i ? z[i][j] : 0;  // u times the 1 of l
            for (std::size_t k = std::max(i, j + 1); k < n; k++) s += z[i][k] * z[k][j];
            r.push_back(s.real() + 0.75 * s.imag());
          }
        return r;
      },
      complex_squares, 1e-4));
  // The space of the columns does not show phases.
  c.push_back(row_of(
      "complex linalg::qr",
      [](const Array& a) {
        const auto [q, r] = linalg::qr(a);
        const Array rows = sum(real(r) * real(r) + imag(r) * imag(r), {.axis = -1, .keepdims = true});
        return weighed(matmul(q, adjoint(q))) + rows[{all, slice(0, 1), all}];
      },
      [](const PlainMatrix& a) {
        const PlainMatrix space = a * plain_inverse(transposed(a) * a) * transposed(a);
        Numbers r = weighed(space);
        // the first row of R: its first column's length, and the products with the other ones by it
        const PlainMatrix gram = transposed(a) * a;
        const std::size_t n = a.n / 2;
        double row = 0;
        for (std::size_t j = 0; j < n; j++)
          row += (gram.at(0, j) * gram.at(0, j) + gram.at(n, j) * gram.at(n, j)) / gram.at(0, 0);
        for (double& v : r) v += row;
        return r;
      },
      {{10, 5, 3}, -1, 1}));
  c.push_back(row_of(
      "complex linalg::eigh",
      [](const Array& a) {
        const auto [w, v] = linalg::eigh(hermitian(a));
        return weighed(matmul(v * log(expand_dims(w, -2)), adjoint(v)));
      },
      [](const PlainMatrix& a) {
        const PlainEigen e = plain_eigen(hermitian(a));
        Numbers logs;
        for (const double w : e.values) logs.push_back(std::log(w));
        return weighed(e.vectors * diagonal_matrix(logs) * transposed(e.vectors));
      }));
  c.push_back(row_of(
      "complex linalg::eigvalsh", [](const Array& a) { return linalg::eigvalsh(hermitian(a)); },
      [](const PlainMatrix& a) {  // each stands there twice
        const Numbers twice = plain_eigen(hermitian(a)).values;
        Numbers r;
        for (std::size_t k = 0; k < twice.size(); k += 2) r.push_back(twice[k]);
        return r;
      }));
  c.push_back(row_of(
      "complex linalg::svd",
      [](const Array& a) {
        const auto [u, s, vh] = linalg::svd(hermitian(a)[{all, all, slice(3)}], {.full_matrices = false});
        return weighed(matmul(u * log(expand_dims(s, -2)), vh));
      },
      [](const PlainMatrix& a) {
        const PlainMatrix h = hermitian(a);
        const std::size_t n = a.m / 2;
        PlainMatrix tall(a.m, 6);
        for (std::size_t i = 0; i < a.m; i++)
          for (std::size_t j = 0; j < 6; j++) tall.at(i, j) = h.at(i, j < 3 ? j : n + j - 3);
        return weighed(plain_singular_function(tall, [](double s) { return std::log(s); }));
      }));
}

static void add_complex_functions_of_matrices(Cases& c) {
  c.push_back(row_of(
      "complex linalg::pinv", [](const Array& a) { return weighed(linalg::pinv(a)); },
      [](const PlainMatrix& a) { return weighed(plain_inverse(transposed(a) * a) * transposed(a)); },
      {{10, 5, 3}, -1, 1}));
  // |det|^2 is the determinant of what is embedded.
  c.push_back(row_of(
      "complex linalg::slogdet", [](const Array& a) { return linalg::slogdet(a).logabsdet; },
      [](const PlainMatrix& a) { return Numbers{0.5 * std::log(plain_det(a))}; }));
  c.push_back(row_of(
      "complex linalg::det",
      [](const Array& a) {
        const Array d = linalg::det(a / 4), z = linalg::slogdet(a / 4).sign;
        return real(d) * real(d) + imag(d) * imag(d) + real(conj(z) * d);
      },
      [](const PlainMatrix& a) {
        const double square = plain_det(0.25 * a);
        return Numbers{square + std::sqrt(square)};
      }));
  c.push_back(row_of(
      "complex linalg::expm",
      [](const Array& a) { return weighed(linalg::expm(a / 2, {.max_squarings = 4})); },
      [](const PlainMatrix& a) { return weighed(plain_exp(0.5 * a)); }, complex_squares, 1e-4));
  c.push_back(row_of(
      "complex linalg::matrix_norm", [](const Array& a) { return linalg::matrix_norm(a); },
      [](const PlainMatrix& a) {  // every number stands there twice
        double squares = 0;
        for (const double v : a.data) squares += v * v / 2;
        return Numbers{std::sqrt(squares)};
      }));
  c.push_back(row_of(
      "complex linalg::cond", [](const Array& a) { return linalg::cond(hermitian(a)); },
      [](const PlainMatrix& a) {
        const Numbers e = plain_eigen(hermitian(a)).values;
        return Numbers{*std::max_element(e.begin(), e.end()) / *std::min_element(e.begin(), e.end())};
      }));
  OpCase rank = row_of(
      "complex linalg::matrix_rank", [](const Array& a) { return linalg::matrix_rank(a); },
      [](const PlainMatrix& a) { return Numbers{static_cast<double>(a.m / 2)}; });
  c.push_back(whole_exact(rank));
}

// out[i, k] = sum over j of (x + i y)[i + j, 0..] (u + i v)[j], along the rows of [1, 1, 20].
Cases complex_conv_cases() {
  Cases c;
  const auto at = [](H x, std::size_t k, std::int64_t i) {
    const auto place = static_cast<std::size_t>(i);
    return std::complex(x[k].data[place], x[k + 1].data[place]);
  };
  const auto row = [&](const char* name, std::function<Array(const Array&, const Array&)> f,
                       bool is_conjugate, bool is_turned) {
    c.push_back({name,
                 [f](S x) { return weighed(f(complex(x[0], x[1]), complex(x[2], x[3]))); },
                 [=](H x) {
                   Numbers r;
                   for (std::int64_t i = 0; i < 18; i++) {
                     std::complex<double> s = 0;
                     for (std::int64_t j = 0; j < 3; j++) {
                       const std::complex<double> b = at(x, 2, is_turned ? 2 - j : j);
                       s += at(x, 0, i + j) * (is_conjugate ? std::conj(b) : b);
                     }
                     r.push_back(s.real() + 0.75 * s.imag());
                   }
                   return r;
                 },
                 {{{20}, -1, 1}, {{20}, -1, 1}, {{3}, -1, 1}, {{3}, -1, 1}},
                 true,
                 2e-6});
  };
  row(
      "complex conv",
      [](const Array& a, const Array& b) {
        return conv(a.reshape({1, 1, 20}), b.reshape({1, 1, 3}), {1}).reshape({18});
      },
      false, false);
  row(
      "complex convolve", [](const Array& a, const Array& b) { return convolve(a, b, ConvolveMode::valid); },
      false, true);
  row(
      "complex correlate",
      [](const Array& a, const Array& b) { return correlate(a, b, ConvolveMode::valid); }, true, false);
  return c;
}

Cases complex_linalg_cases() {
  Cases c;
  add_complex_equations(c);
  add_complex_factors(c);
  add_complex_functions_of_matrices(c);
  return c;
}

}  // namespace shardarray::testing
