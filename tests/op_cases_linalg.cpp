// Rows of op_cases.h: matrices that are factorised, equations, determinants.
#include "op_cases.h"
#include "plain_matrices.h"
#include "shardarray/linalg.h"
#include "shardarray/polynomials.h"

namespace shardarray::testing {
namespace linalg_rows {

using S = std::span<const Array>;
using H = const Hosts&;

const OpInput batch_of_squares{{10, 6, 6}, -1, 1};
const OpInput batch_of_sides{{10, 6, 3}, -1, 1};

/// x with a heavy diagonal: far from singular.
Array heavy(const Array& x) { return x + 4 * eye(x.shape().back(), std::nullopt, 0, x.dtype()); }
PlainMatrix heavy(const PlainMatrix& x) { return x + 4.0 * identity_matrix(x.m); }
/// Symmetric, with eigenvalues that are positive and differ.
Array definite(const Array& x) {
  const Array n = arange(x.shape().back()).astype(x.dtype());
  return heavy((x + swapaxes(x, -1, -2)) / 2) + eye(x.shape().back(), std::nullopt, 0, x.dtype()) * n;
}
PlainMatrix definite(const PlainMatrix& x) {
  PlainMatrix r = heavy(0.5 * (x + transposed(x)));
  for (std::size_t i = 0; i < r.m; i++) r.at(i, i) += static_cast<double>(i);
  return r;
}
PlainMatrix lower_part(const PlainMatrix& a, bool is_strict = false) {
  PlainMatrix r(a.m, a.n);
  for (std::size_t i = 0; i < a.m; i++)
    for (std::size_t j = 0; j < a.n && (is_strict ? j < i : j <= i); j++) r.at(i, j) = a.at(i, j);
  return r;
}
PlainMatrix upper_part(const PlainMatrix& a) { return transposed(lower_part(transposed(a))); }

/// A row whose result is f of every matrix of the first operand.
using PlainFunction = std::function<Numbers(const PlainMatrix&)>;
OpCase matrix_case(std::string name, std::function<Array(S)> f, const PlainFunction& plain,
                   OpInput in = batch_of_squares, double tolerance = 2e-5) {
  return {
      std::move(name),
      std::move(f),
      [plain](H x) { return of_matrices(x[0], [&](std::size_t b) { return plain(matrix_of(x[0], b)); }); },
      {std::move(in)},
      true,
      tolerance};
}
/// A row of A and B.
using PlainEquation = std::function<Numbers(const PlainMatrix&, const PlainMatrix&)>;
OpCase equation_case(std::string name, std::function<Array(S)> f, const PlainEquation& plain, OpInput sides) {
  return {std::move(name),
          std::move(f),
          [plain](H x) {
            return of_matrices(x[0],
                               [&](std::size_t b) { return plain(matrix_of(x[0], b), matrix_of(x[1], b)); });
          },
          {batch_of_squares, std::move(sides)},
          true,
          2e-5};
}

}  // namespace linalg_rows

using namespace linalg_rows;

static void add_equations(Cases& c) {
  c.push_back(equation_case(
      "linalg::solve", [](S x) { return linalg::solve(heavy(x[0]), x[1]); },
      [](const PlainMatrix& a, const PlainMatrix& b) { return plain_solve(heavy(a), b).data; },
      batch_of_sides));
  c.push_back({"linalg::solve of one matrix",
               [](S x) { return linalg::solve(heavy(x[0]), x[1]); },
               [](H x) {
                 return of_matrices(x[1], [&](std::size_t b) {
                   return plain_solve(heavy(matrix_of(x[0], 0)), matrix_of(x[1], b)).data;
                 });
               },
               {{{6, 6}, -1, 1}, batch_of_sides},
               true,
               2e-5});
  c.push_back({"linalg::solve of a vector",
               [](S x) { return linalg::solve(heavy(x[0]), x[1]); },
               [](H x) {
                 return of_matrices(x[0], [&](std::size_t b) {
                   return plain_solve(heavy(matrix_of(x[0], b)), matrix_of(x[1], 0, 1)).data;
                 });
               },
               {batch_of_squares, {{6}, -1, 1}},
               true,
               2e-5});
  c.push_back(matrix_case(
      "linalg::inv", [](S x) { return linalg::inv(heavy(x[0])); },
      [](const PlainMatrix& a) { return plain_inverse(heavy(a)).data; }));
  c.push_back(equation_case(
      "linalg::triangular_solve", [](S x) { return linalg::triangular_solve(heavy(x[0]), x[1]); },
      [](const PlainMatrix& a, const PlainMatrix& b) {
        return transposed(plain_solve(transposed(upper_part(heavy(a))), transposed(b))).data;
      },
      {{10, 3, 6}, -1, 1}));
  c.push_back(equation_case(
      "linalg::triangular_solve unit",
      [](S x) {
        return linalg::triangular_solve(
            x[0] / 3, x[1], {.left_side = true, .lower = true, .transpose_a = true, .unit_diagonal = true});
      },
      [](const PlainMatrix& a, const PlainMatrix& b) {
        const PlainMatrix l = (1.0 / 3) * lower_part(a, true) + identity_matrix(a.m);
        return plain_solve(transposed(l), b).data;
      },
      batch_of_sides));
  c.push_back(equation_case(
      "linalg::solve_triangular",
      [](S x) { return linalg::solve_triangular(heavy(x[0]), x[1], {.lower = true}); },
      [](const PlainMatrix& a, const PlainMatrix& b) { return plain_solve(lower_part(heavy(a)), b).data; },
      batch_of_sides));
}

static void add_factorizations(Cases& c) {
  c.push_back(matrix_case(
      "linalg::cholesky", [](S x) { return linalg::cholesky(definite(x[0])); },
      [](const PlainMatrix& a) { return plain_cholesky(definite(a)).data; }));
  c.push_back(matrix_case(
      "linalg::cholesky upper", [](S x) { return linalg::cholesky(definite(x[0]), {.upper = true}); },
      [](const PlainMatrix& a) { return transposed(plain_cholesky(definite(a))).data; }));
  c.push_back(matrix_case(
      "linalg::lu", [](S x) { return linalg::lu(heavy(x[0])).lu; },
      [](const PlainMatrix& a) { return plain_lu(heavy(a)).lu.data; }));
  // rows of a tall matrix whose largest elements stand apart
  c.push_back(matrix_case(
      "linalg::lu of rows",
      [](S x) { return linalg::lu(x[0] + 4 * eye(x[0].shape()[1], x[0].shape()[2], 0, x[0].dtype())).lu; },
      [](const PlainMatrix& a) {
        PlainMatrix h = a;
        for (std::size_t i = 0; i < std::min(a.m, a.n); i++) h.at(i, i) += 4;
        return plain_lu(h).lu.data;
      },
      {{3, 10, 6}, -1, 1}));
  OpCase positions = matrix_case(
      "linalg::lu permutation", [](S x) { return linalg::lu(x[0]).permutation; },
      [](const PlainMatrix& a) {
        Numbers r;
        for (const std::size_t p : plain_lu(a).permutation) r.push_back(static_cast<double>(p));
        return r;
      });
  positions.differentiable = false;
  c.push_back(positions);
}

static void add_determinants(Cases& c) {
  c.push_back(matrix_case(
      "linalg::det", [](S x) { return linalg::det(heavy(x[0]) / 4); },
      [](const PlainMatrix& a) { return Numbers{plain_det(0.25 * heavy(a))}; }));
  for (const std::int64_t n : {1, 2, 3})
    c.push_back(matrix_case(
        "linalg::det of " + std::to_string(n),
        [n](S x) {
          return linalg::det(heavy(x[0][{ellipsis, slice(n), slice(n)}]) / 4);
        },
        [n](const PlainMatrix& a) {
          PlainMatrix corner(static_cast<std::size_t>(n), static_cast<std::size_t>(n));
          for (std::size_t i = 0; i < corner.m; i++)
            for (std::size_t j = 0; j < corner.n; j++) corner.at(i, j) = a.at(i, j);
          return Numbers{plain_det(0.25 * heavy(corner))};
        }));
  c.push_back(matrix_case(
      "linalg::slogdet", [](S x) { return linalg::slogdet(heavy(x[0])).logabsdet; },
      [](const PlainMatrix& a) { return Numbers{std::log(std::abs(plain_det(heavy(a))))}; }));
  OpCase signs = matrix_case(
      "linalg::slogdet sign", [](S x) { return linalg::slogdet(x[0]).sign; },
      [](const PlainMatrix& a) { return Numbers{plain_det(a) < 0 ? -1.0 : 1.0}; });
  signs.differentiable = false;
  c.push_back(signs);
}

static void add_orthogonal_factors(Cases& c) {
  c.push_back(matrix_case(
      "linalg::qr", [](S x) { return linalg::qr(heavy(x[0])).q; },
      [](const PlainMatrix& a) { return plain_qr(heavy(a)).q.data; }));
  c.push_back(matrix_case(
      "linalg::qr complete",
      [](S x) {
        const auto [q, r] = linalg::qr(heavy(x[0])[{all, all, slice(2)}], linalg::QrMode::complete);
        return concatenate({q, r}, -1);
      },
      [](const PlainMatrix& a) {
        const PlainMatrix h = heavy(a);
        PlainMatrix tall(a.m, 2);
        for (std::size_t i = 0; i < a.m; i++)
          for (std::size_t j = 0; j < 2; j++) tall.at(i, j) = h.at(i, j);
        const PlainQr f = plain_qr(tall);
        Numbers r;
        for (std::size_t i = 0; i < a.m; i++) {
          for (std::size_t j = 0; j < a.m; j++) r.push_back(f.q.at(i, j));
          for (std::size_t j = 0; j < 2; j++) r.push_back(f.r.at(i, j));
        }
        return r;
      }));
  c.push_back(matrix_case(
      "linalg::qr of columns",
      [](S x) { return linalg::qr(x[0] + 4 * eye(x[0].shape()[1], x[0].shape()[2], 0, x[0].dtype())).r; },
      [](const PlainMatrix& a) {
        PlainMatrix h = a;
        for (std::size_t i = 0; i < std::min(a.m, a.n); i++) h.at(i, i) += 4;
        const PlainQr f = plain_qr(h);
        return Numbers(f.r.data.begin(),
                       f.r.data.begin() + static_cast<std::ptrdiff_t>(std::min(a.m, a.n) * a.n));
      },
      {{3, 6, 10}, -1, 1}));
  // A function of the eigenvalues does not show the signs of eigenvectors.
  c.push_back(matrix_case(
      "linalg::eigh",
      [](S x) {
        const auto [w, v] = linalg::eigh(definite(x[0]));
        return matmul(v * log(expand_dims(w, -2)), swapaxes(v, -1, -2));
      },
      [](const PlainMatrix& a) {
        const PlainEigen e = plain_eigen(definite(a));
        Numbers logs;
        for (const double w : e.values) logs.push_back(std::log(w));
        return (e.vectors * diagonal_matrix(logs) * transposed(e.vectors)).data;
      }));
  c.push_back(matrix_case(
      "linalg::eigvalsh", [](S x) { return linalg::eigvalsh(definite(x[0])); },
      [](const PlainMatrix& a) { return plain_eigen(definite(a)).values; }));
  c.push_back(matrix_case(
      "linalg::svd",
      [](S x) {
        const auto [u, s, vh] = linalg::svd(definite(x[0])[{all, all, slice(3)}], {.full_matrices = false});
        return matmul(u * log(expand_dims(s, -2)), vh);
      },
      [](const PlainMatrix& a) {
        const PlainMatrix h = definite(a);
        PlainMatrix tall(a.m, 3);
        for (std::size_t i = 0; i < a.m; i++)
          for (std::size_t j = 0; j < 3; j++) tall.at(i, j) = h.at(i, j);
        return plain_singular_function(tall, [](double s) { return std::log(s); }).data;
      }));
  c.push_back(matrix_case(
      "linalg::svdvals", [](S x) { return linalg::svdvals(definite(x[0])); },
      [](const PlainMatrix& a) {
        Numbers s = plain_eigen(definite(a)).values;  // of a positive matrix the same
        std::reverse(s.begin(), s.end());
        return s;
      }));
}

static void add_singular_functions(Cases& c) {
  const auto plain_pinv = [](const PlainMatrix& a) {
    return (plain_inverse(transposed(a) * a) * transposed(a)).data;
  };
  c.push_back(matrix_case(
      "linalg::pinv",
      [](S x) {
        return linalg::pinv(definite(x[0])[{all, all, slice(3)}]);
      },
      [plain_pinv](const PlainMatrix& a) {
        const PlainMatrix h = definite(a);
        PlainMatrix tall(a.m, 3);
        for (std::size_t i = 0; i < a.m; i++)
          for (std::size_t j = 0; j < 3; j++) tall.at(i, j) = h.at(i, j);
        return plain_pinv(tall);
      }));
  c.push_back(matrix_case(
      "linalg::pinv hermitian", [](S x) { return linalg::pinv(definite(x[0]), {.hermitian = true}); },
      [plain_pinv](const PlainMatrix& a) { return plain_pinv(definite(a)); }, batch_of_squares, 1e-4));
  OpCase rank = matrix_case(
      "linalg::matrix_rank", [](S x) { return linalg::matrix_rank(definite(x[0])); },
      [](const PlainMatrix& a) { return Numbers{static_cast<double>(a.m)}; });
  c.push_back(whole_exact(rank));
  c.push_back({"linalg::lstsq",
               [](S x) {
                 return linalg::lstsq(definite(x[0])[{all, slice(3)}], x[1]).x;
               },
               [](H x) {
                 const PlainMatrix a = definite(matrix_of(x[0], 0));
                 PlainMatrix tall(a.m, 3);
                 for (std::size_t i = 0; i < a.m; i++)
                   for (std::size_t j = 0; j < 3; j++) tall.at(i, j) = a.at(i, j);
                 return plain_solve(transposed(tall) * tall, transposed(tall) * matrix_of(x[1], 0, 1)).data;
               },
               {{{6, 6}, -1, 1}, {{6}, -1, 1}},
               true,
               2e-5});
  c.push_back(matrix_case(
      "linalg::expm", [](S x) { return linalg::expm(x[0], {.max_squarings = 4}); },
      [](const PlainMatrix& a) { return plain_exp(a).data; }));
}

static void add_tensors(Cases& c) {
  c.push_back({"linalg::tensorinv",
               [](S x) {
                 return linalg::tensorinv(reshape(heavy(x[0]), {2, 3, 6}));
               },
               [](H x) { return plain_inverse(heavy(matrix_of(x[0], 0))).data; },
               {{{6, 6}, -1, 1}},
               true,
               2e-5});
  c.push_back({"linalg::tensorsolve",
               [](S x) {
                 return linalg::tensorsolve(reshape(heavy(x[0]), {2, 3, 6}), x[1]);
               },
               [](H x) {
                 const HostArray flat{{6}, x[1].data};
                 return plain_solve(heavy(matrix_of(x[0], 0)), matrix_of(flat, 0, 1)).data;
               },
               {{{6, 6}, -1, 1}, {{2, 3}, -1, 1}},
               true,
               2e-5});
  c.push_back({"polyfit",
               [](S x) { return polyfit(x[0], x[1], 2, {.w = x[2]}); },
               [](H x) {
                 PlainMatrix powers(10, 3), right(10, 1);
                 for (std::size_t i = 0; i < 10; i++) {
                   const double w = x[2].data[i];
                   for (std::size_t j = 0; j < 3; j++) powers.at(i, 2 - j) = w * std::pow(x[0].data[i], j);
                   right.at(i, 0) = w * x[1].data[i];
                 }
                 return plain_solve(transposed(powers) * powers, transposed(powers) * right).data;
               },
               {{{10}, -2, 2, DType::float32, false, true}, {{10}}, {{10}, 0.5, 2}},
               true,
               2e-5});
  const auto eigenvalues = [](const PlainMatrix& a) { return plain_eigen(definite(a)).values; };
  c.push_back(matrix_case(
      "linalg::matrix_norm", [](S x) { return linalg::matrix_norm(definite(x[0]), {.ord = 2}); },
      [eigenvalues](const PlainMatrix& a) {
        const Numbers e = eigenvalues(a);
        return Numbers{*std::max_element(e.begin(), e.end())};
      }));
  c.push_back(matrix_case(
      "linalg::cond", [](S x) { return linalg::cond(definite(x[0])); },
      [eigenvalues](const PlainMatrix& a) {
        const Numbers e = eigenvalues(a);
        return Numbers{*std::max_element(e.begin(), e.end()) / *std::min_element(e.begin(), e.end())};
      }));
  c.push_back(matrix_case(
      "linalg::matrix_norm nuclear",
      [](S x) { return linalg::matrix_norm(definite(x[0]), {.nuclear = true}); },
      [eigenvalues](const PlainMatrix& a) {
        const Numbers e = eigenvalues(a);
        return Numbers{std::accumulate(e.begin(), e.end(), 0.0)};
      }));
}

Cases linalg_cases() {
  Cases c;
  add_tensors(c);
  add_equations(c);
  add_factorizations(c);
  add_determinants(c);
  add_orthogonal_factors(c);
  add_singular_functions(c);
  return c;
}

}  // namespace shardarray::testing
