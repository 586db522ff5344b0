// The other distributions of jax.random: names, order of parameters and numbers are JAX's, for the same key, but for the last bits
// of logarithms and powers. Keys, bits, uniform, normal, exponential, gumbel and truncated_normal stand in random.h.
//
// Parameters are numbers or arrays, which become the dtype and are broadcast to `shape`; `{}`: to one another, where JAX has a
// default. The result is of that shape and of `dtype`, floating unless a doc says otherwise. All throw as the functions of random.h,
// ShapeError where parameters cannot be broadcast to the shape. Where a parameter lies outside of its range, numbers are NaN or of no
// use, as in JAX. Sharded draws move nothing. Elementwise parameters have derivatives: of formulas, and of gamma and what is made of
// it those of the draw at the same place of its distribution, as in JAX, whose derivatives throw Error. poisson and binomial are whole
// numbers, which have none.
//
// Rejection is made of a fixed number of attempts, of which one at least is accepted but for 1 in 10^20 numbers: so long the numbers
// are those of JAX's loops, and every draw is the same work. Of poisson and binomial with a mean of 10 and more that holds for single
// numbers: in one draw of many JAX goes on until the last one is accepted, and replaces the others meanwhile; here each is a function
// of the key and its position alone, as all draws are.
#pragma once
#include "shardarray/random.h"

namespace shardarray::random {

// ---------------------------------------------------------------- by a formula
/// Density exp(-|x|) / 2.
[[nodiscard]] SHARDARRAY_API Array laplace(const detail::Key& key, const Shape& shape = {},
                                           DType dtype = float32, Where w = Where::here());
/// Density exp(-x) / (1 + exp(-x))^2.
[[nodiscard]] SHARDARRAY_API Array logistic(const detail::Key& key, const Shape& shape = {},
                                            DType dtype = float32, Where w = Where::here());
/// Density 1 / (pi (1 + x^2)).
[[nodiscard]] SHARDARRAY_API Array cauchy(const detail::Key& key, const Shape& shape = {},
                                          DType dtype = float32, Where w = Where::here());
/// -1 and 1, of any dtype but bool and unsigned ones, which throw DTypeError.
[[nodiscard]] SHARDARRAY_API Array rademacher(const detail::Key& key, const Shape& shape = {},
                                              DType dtype = int32, Where w = Where::here());
/// The length of a vector of three standard normal numbers.
[[nodiscard]] SHARDARRAY_API Array maxwell(const detail::Key& key, const Shape& shape = {},
                                           DType dtype = float32, Where w = Where::here());
/// maxwell with a random sign, times scale, plus loc.
[[nodiscard]] SHARDARRAY_API Array double_sided_maxwell(const detail::Key& key, const Array& loc,
                                                        const Array& scale, const Shape& shape = {},
                                                        DType dtype = float32, Where w = Where::here());
/// scale times (-log(1 - u))^(1 / concentration). Without a shape every number has a draw of its own; JAX's then share one.
[[nodiscard]] SHARDARRAY_API Array weibull_min(const detail::Key& key, const Array& scale,
                                               const Array& concentration, const Shape& shape = {},
                                               DType dtype = float32, Where w = Where::here());
/// Density b x^(-b - 1) for x >= 1.
[[nodiscard]] SHARDARRAY_API Array pareto(const detail::Key& key, const Array& b, const Shape& shape = {},
                                          DType dtype = float32, Where w = Where::here());
/// scale times sqrt(-2 log(u)).
[[nodiscard]] SHARDARRAY_API Array rayleigh(const detail::Key& key, const Array& scale,
                                            const Shape& shape = {}, DType dtype = float32,
                                            Where w = Where::here());
/// The inverse Gaussian distribution of this mean and scale 1.
[[nodiscard]] SHARDARRAY_API Array wald(const detail::Key& key, const Array& mean, const Shape& shape = {},
                                        DType dtype = float32, Where w = Where::here());
/// Density rising from left to mode, falling to right.
[[nodiscard]] SHARDARRAY_API Array triangular(const detail::Key& key, const Array& left, const Array& mode,
                                              const Array& right, const Shape& shape = {},
                                              DType dtype = float32, Where w = Where::here());
/// exp(sigma * normal).
[[nodiscard]] SHARDARRAY_API Array lognormal(const detail::Key& key, const Array& sigma = 1.0,
                                             const Shape& shape = {}, DType dtype = float32,
                                             Where w = Where::here());
/// How many trials of probability p until the first that succeeds: 1, 2, ... Of any dtype but bool, which throws DTypeError.
[[nodiscard]] SHARDARRAY_API Array geometric(const detail::Key& key, const Array& p, const Shape& shape = {},
                                             DType dtype = int32, Where w = Where::here());

// ---------------------------------------------------------------- of matrices
/// What multivariate_normal takes the root of the covariances by.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class CovarianceRoot : std::uint8_t { cholesky, eigh, svd };
#pragma GCC diagnostic pop
/// mean [a.., n], covariances [b.., n, n] -> [shape.., n]: normal vectors; a.. and b.. are broadcast to `shape`, to one another without
/// one (`none`), and `{}` is one vector. Of the parameters' floating dtype, in which the numbers are drawn, unless `dtype` says of
/// which. With derivatives by both. NaN where a matrix is not positive definite (eigh, svd: semi-definite). On CPU devices (linalg.h).
/// Throws ShapeError for a mean that is a scalar, other sizes, and shapes that do not fit.
[[nodiscard]] SHARDARRAY_API Array multivariate_normal(const detail::Key& key, const Array& mean,
                                                       const Array& cov,
                                                       const std::optional<Shape>& shape = std::nullopt,
                                                       std::optional<DType> dtype = std::nullopt,
                                                       CovarianceRoot root = CovarianceRoot::cholesky,
                                                       Where w = Where::here());
/// [shape.., n, m] with orthonormal columns (n < m: rows), all equally likely. m: n unless given. On CPU devices. Throws ShapeError for
/// negative sizes.
[[nodiscard]] SHARDARRAY_API Array orthogonal(const detail::Key& key, std::int64_t n, const Shape& shape = {},
                                              DType dtype = float32,
                                              std::optional<std::int64_t> m = std::nullopt,
                                              Where w = Where::here());

// ---------------------------------------------------------------- by rejection
/// Density x^(a - 1) exp(-x) / gamma(a) for x > 0, and its logarithm, which is exact for small a too. Source: G. Marsaglia, W. Tsang
/// (2000).
[[nodiscard]] SHARDARRAY_API Array gamma(const detail::Key& key, const Array& a, const Shape& shape = {},
                                         DType dtype = float32, Where w = Where::here());
[[nodiscard]] SHARDARRAY_API Array loggamma(const detail::Key& key, const Array& a, const Shape& shape = {},
                                            DType dtype = float32, Where w = Where::here());
/// Density proportional to x^(a - 1) (1 - x)^(b - 1).
[[nodiscard]] SHARDARRAY_API Array beta(const detail::Key& key, const Array& a, const Array& b,
                                        const Shape& shape = {}, DType dtype = float32,
                                        Where w = Where::here());
/// Vectors of sum 1, along a new last axis: alpha [a.., n] -> [shape.., n], `shape` ends in a..; `{}`: a... Throws ShapeError for a
/// scalar.
[[nodiscard]] SHARDARRAY_API Array dirichlet(const detail::Key& key, const Array& alpha,
                                             const Shape& shape = {}, DType dtype = float32,
                                             Where w = Where::here());
/// Twice gamma of df / 2.
[[nodiscard]] SHARDARRAY_API Array chisquare(const detail::Key& key, const Array& df, const Shape& shape = {},
                                             DType dtype = float32, Where w = Where::here());
/// Student's distribution with df degrees of freedom.
[[nodiscard]] SHARDARRAY_API Array t(const detail::Key& key, const Array& df, const Shape& shape = {},
                                     DType dtype = float32, Where w = Where::here());
/// The F distribution: (chisquare of dfnum / dfnum) / (chisquare of dfden / dfden).
[[nodiscard]] SHARDARRAY_API Array f(const detail::Key& key, const Array& dfnum, const Array& dfden,
                                     const Shape& shape = {}, DType dtype = float32, Where w = Where::here());
/// Density proportional to exp(-|x|^p).
[[nodiscard]] SHARDARRAY_API Array generalized_normal(const detail::Key& key, double p,
                                                      const Shape& shape = {}, DType dtype = float32,
                                                      Where w = Where::here());
/// [shape.., d]: points of the ball of radius 1 in the p-norm, all equally likely. Throws ShapeError for d < 0.
[[nodiscard]] SHARDARRAY_API Array ball(const detail::Key& key, std::int64_t d, double p = 2,
                                        const Shape& shape = {}, DType dtype = float32,
                                        Where w = Where::here());
/// How many events there are where lam are expected; lam is taken as float32. Of any dtype but bool, which throws DTypeError; -1
/// where lam is negative or NaN. Sources: D. Knuth; W. Hormann (1993).
[[nodiscard]] SHARDARRAY_API Array poisson(const detail::Key& key, const Array& lam, const Shape& shape = {},
                                           DType dtype = int32, Where w = Where::here());
/// How many of n trials of probability p succeed, floating; NaN for a negative n and for a p below 0 or NaN. Source: W. Hormann
/// (1993).
[[nodiscard]] SHARDARRAY_API Array binomial(const detail::Key& key, const Array& n, const Array& p,
                                            const Shape& shape = {}, DType dtype = float32,
                                            Where w = Where::here());
/// How often each of the outcomes, of probabilities p along the last axis, comes in n trials: p [a.., k] -> [a.., k], n is
/// broadcast to a... Throws ShapeError for a scalar p.
[[nodiscard]] SHARDARRAY_API Array multinomial(const detail::Key& key, const Array& n, const Array& p,
                                               DType dtype = float32, Where w = Where::here());

}  // namespace shardarray::random
