// Functions of real and of complex matrices by the names that tests/reference/linalg_functions.py gives them.
#pragma once
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "shardarray/shardarray.h"

namespace shardarray::testing {

using Matrices = std::vector<Array>;
using MatrixFunctions = std::map<std::string, std::function<Matrices(const Matrices&)>>;

/// |x|^2: signs and phases of eigenvectors and singular vectors are free.
inline Array squared_sizes(const Array& x) { return square(real(x)) + square(imag(x)); }

inline MatrixFunctions matrix_functions() {
  using Arrays = Matrices;
  namespace la = linalg;
  return {
      {"cholesky", [](const Arrays& x) { return Arrays{la::cholesky(x[0])}; }},
      {"cholesky lower",
       [](const Arrays& x) { return Arrays{la::cholesky(x[0], {.symmetrize_input = false})}; }},
      {"lu",
       [](const Arrays& x) {
         const auto [lu, pivots, permutation] = la::lu(x[0]);
         return Arrays{lu, pivots, permutation};
       }},
      {"solve", [](const Arrays& x) { return Arrays{la::solve(x[0], x[1])}; }},
      {"triangular_solve",
       [](const Arrays& x) {
         return Arrays{la::triangular_solve(x[0], x[1], {.left_side = true, .lower = true})};
       }},
      {"solve_triangular",
       [](const Arrays& x) {
         return Arrays{la::solve_triangular(x[0], x[1], {.trans = true, .unit_diagonal = true})};
       }},
      {"inv", [](const Arrays& x) { return Arrays{la::inv(x[0])}; }},
      {"det", [](const Arrays& x) { return Arrays{la::det(x[0])}; }},
      {"slogdet",
       [](const Arrays& x) {
         const auto [sign, logabsdet] = la::slogdet(x[0]);
         return Arrays{sign, logabsdet};
       }},
      {"qr",
       [](const Arrays& x) {
         const auto [q, r] = la::qr(x[0]);
         return Arrays{q, r};
       }},
      {"qr complete",
       [](const Arrays& x) {
         const auto [q, r] = la::qr(x[0], la::QrMode::complete);
         return Arrays{q, r};
       }},
      {"eigh",
       [](const Arrays& x) {
         const auto [w, v] = la::eigh(x[0]);
         return Arrays{w, squared_sizes(v)};
       }},
      {"eigh upper",
       [](const Arrays& x) {
         return Arrays{la::eigh(x[0], {.lower = false, .symmetrize_input = false}).eigenvalues};
       }},
      {"eigvalsh", [](const Arrays& x) { return Arrays{la::eigvalsh(x[0])}; }},
      {"svdvals", [](const Arrays& x) { return Arrays{la::svdvals(x[0])}; }},
      {"pinv", [](const Arrays& x) { return Arrays{la::pinv(x[0])}; }},
      {"pinv hermitian", [](const Arrays& x) { return Arrays{la::pinv(x[0], {.hermitian = true})}; }},
      {"matrix_rank", [](const Arrays& x) { return Arrays{la::matrix_rank(x[0])}; }},
      {"matrix_rank tol", [](const Arrays& x) { return Arrays{la::matrix_rank(x[0], {.tol = 1.5})}; }},
      {"lstsq",
       [](const Arrays& x) {
         const auto [solution, residuals, rank, s] = la::lstsq(x[0], x[1]);
         return Arrays{solution, residuals, rank, s};
       }},
      {"expm", [](const Arrays& x) { return Arrays{la::expm(x[0])}; }},
      {"cond",
       [](const Arrays& x) {
         constexpr double inf = std::numeric_limits<double>::infinity();
         Arrays r{la::cond(x[0])};
         for (const double ord : {-2.0, 1.0, -1.0, inf, -inf}) r.push_back(la::cond(x[0], {.ord = ord}));
         return r;
       }},
      {"cond of sides",
       [](const Arrays& x) {
         return Arrays{la::cond(x[0]), la::cond(x[0], {.ord = -2})};
       }},
  };
}

}  // namespace shardarray::testing
