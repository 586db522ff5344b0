// The other distributions of jax.random, with JAX's names, parameter order and, for the same key, numbers, except for the last bits of
// logarithms and powers. Keys, bits, uniform, normal, exponential, gumbel and truncated_normal are in random.h.
//
// Parameters are numbers or arrays, cast to the dtype and broadcast to `shape`, or to each other for `{}` where JAX has a default. The
// result has that shape and `dtype`, floating unless stated otherwise. All throw as the functions of random.h, and ShapeError if
// parameters cannot be broadcast to the shape. Parameters out of range give NaN or meaningless numbers, as in JAX. Sharded draws move
// nothing. Elementwise parameters have derivatives: those of the formulas and, for gamma and what is derived from it, those of the draw
// at a fixed quantile, as in JAX; second derivatives of these throw Error. poisson and binomial are integer-valued and have none.
//
// Rejection uses a fixed number of attempts, of which at least one is accepted except for 1 in 10^20 numbers: up to that, the numbers
// equal those of JAX's loops, and every draw takes the same work. For poisson and binomial with a mean of 10 or more, that holds only for
// single numbers: in a draw of many, JAX continues until the last one is accepted and meanwhile replaces the others; here each number
// depends only on the key and its position, like all draws.
#pragma once
#include "shardarray/random.h"

namespace shardarray::random {

// ---------------------------------------------------------------- by formula
/// Density exp(-|x|) / 2.
[[nodiscard]] SHARDARRAY_API Array laplace(const detail::Key& key, const Shape& shape = {},
                                           DType dtype = float32, Where w = Where::here());
/// Density exp(-x) / (1 + exp(-x))^2.
[[nodiscard]] SHARDARRAY_API Array logistic(const detail::Key& key, const Shape& shape = {},
                                            DType dtype = float32, Where w = Where::here());
/// Density 1 / (pi (1 + x^2)).
[[nodiscard]] SHARDARRAY_API Array cauchy(const detail::Key& key, const Shape& shape = {},
                                          DType dtype = float32, Where w = Where::here());
/// -1 and 1 with equal probability, of any dtype but bool and unsigned ones, which throw DTypeError.
[[nodiscard]] SHARDARRAY_API Array rademacher(const detail::Key& key, const Shape& shape = {},
                                              DType dtype = int32, Where w = Where::here());
/// The length of a vector of three standard normal numbers.
[[nodiscard]] SHARDARRAY_API Array maxwell(const detail::Key& key, const Shape& shape = {},
                                           DType dtype = float32, Where w = Where::here());
/// maxwell with a random sign, times scale, plus loc.
[[nodiscard]] SHARDARRAY_API Array double_sided_maxwell(const detail::Key& key, const Array& loc,
                                                        const Array& scale, const Shape& shape = {},
                                                        DType dtype = float32, Where w = Where::here());
/// scale * (-log(1 - u))^(1 / concentration). Without a shape, every number has its own draw; in JAX they then share one.
[[nodiscard]] SHARDARRAY_API Array weibull_min(const detail::Key& key, const Array& scale,
                                               const Array& concentration, const Shape& shape = {},
                                               DType dtype = float32, Where w = Where::here());
/// Density b x^(-b - 1) for x >= 1.
[[nodiscard]] SHARDARRAY_API Array pareto(const detail::Key& key, const Array& b, const Shape& shape = {},
                                          DType dtype = float32, Where w = Where::here());
/// scale * sqrt(-2 log(u)).
[[nodiscard]] SHARDARRAY_API Array rayleigh(const detail::Key& key, const Array& scale,
                                            const Shape& shape = {}, DType dtype = float32,
                                            Where w = Where::here());
/// The inverse Gaussian distribution with this mean and scale 1.
[[nodiscard]] SHARDARRAY_API Array wald(const detail::Key& key, const Array& mean, const Shape& shape = {},
                                        DType dtype = float32, Where w = Where::here());
/// The density rises linearly from left to mode and falls linearly to right.
[[nodiscard]] SHARDARRAY_API Array triangular(const detail::Key& key, const Array& left, const Array& mode,
                                              const Array& right, const Shape& shape = {},
                                              DType dtype = float32, Where w = Where::here());
/// exp(sigma * normal).
[[nodiscard]] SHARDARRAY_API Array lognormal(const detail::Key& key, const Array& sigma = 1.0,
                                             const Shape& shape = {}, DType dtype = float32,
                                             Where w = Where::here());
/// The number of trials of probability p up to the first success: 1, 2, ... Of any dtype but bool, which throws DTypeError.
[[nodiscard]] SHARDARRAY_API Array geometric(const detail::Key& key, const Array& p, const Shape& shape = {},
                                             DType dtype = int32, Where w = Where::here());

// ---------------------------------------------------------------- with matrices
/// How multivariate_normal factors the covariances.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class CovarianceRoot : std::uint8_t { cholesky, eigh, svd };
#pragma GCC diagnostic pop
/// Normal vectors: mean [a.., n], covariances [b.., n, n] -> [shape.., n]. a.. and b.. are broadcast to `shape`, or, with `none`, to each
/// other; `{}` is one vector. Drawn in the parameters' floating dtype unless `dtype` is given. Differentiable by both parameters. NaN if
/// a matrix is not positive definite (eigh, svd: semi-definite). On CPU devices (linalg.h). Throws ShapeError for a scalar mean, sizes
/// that differ, and shapes that do not fit.
[[nodiscard]] SHARDARRAY_API Array multivariate_normal(const detail::Key& key, const Array& mean,
                                                       const Array& cov,
                                                       const std::optional<Shape>& shape = std::nullopt,
                                                       std::optional<DType> dtype = std::nullopt,
                                                       CovarianceRoot root = CovarianceRoot::cholesky,
                                                       Where w = Where::here());
/// Uniformly distributed matrices [shape.., n, m] with orthonormal columns (rows if n < m). m defaults to n. On CPU devices. Throws
/// ShapeError for negative sizes.
[[nodiscard]] SHARDARRAY_API Array orthogonal(const detail::Key& key, std::int64_t n, const Shape& shape = {},
                                              DType dtype = float32,
                                              std::optional<std::int64_t> m = std::nullopt,
                                              Where w = Where::here());

// ---------------------------------------------------------------- by rejection
/// Density x^(a - 1) exp(-x) / gamma(a) for x > 0; loggamma is its logarithm, accurate for small a too. Source: G. Marsaglia, W. Tsang
/// (2000).
[[nodiscard]] SHARDARRAY_API Array gamma(const detail::Key& key, const Array& a, const Shape& shape = {},
                                         DType dtype = float32, Where w = Where::here());
[[nodiscard]] SHARDARRAY_API Array loggamma(const detail::Key& key, const Array& a, const Shape& shape = {},
                                            DType dtype = float32, Where w = Where::here());
/// Density proportional to x^(a - 1) (1 - x)^(b - 1).
[[nodiscard]] SHARDARRAY_API Array beta(const detail::Key& key, const Array& a, const Array& b,
                                        const Shape& shape = {}, DType dtype = float32,
                                        Where w = Where::here());
/// Vectors that sum to 1 along a new last axis: alpha [a.., n] -> [shape.., n], where `shape` ends in a..; `{}` means a... Throws
/// ShapeError for a scalar.
[[nodiscard]] SHARDARRAY_API Array dirichlet(const detail::Key& key, const Array& alpha,
                                             const Shape& shape = {}, DType dtype = float32,
                                             Where w = Where::here());
/// 2 * gamma with a = df / 2.
[[nodiscard]] SHARDARRAY_API Array chisquare(const detail::Key& key, const Array& df, const Shape& shape = {},
                                             DType dtype = float32, Where w = Where::here());
/// Student's t-distribution with df degrees of freedom.
[[nodiscard]] SHARDARRAY_API Array t(const detail::Key& key, const Array& df, const Shape& shape = {},
                                     DType dtype = float32, Where w = Where::here());
/// The F distribution: (chisquare of dfnum / dfnum) / (chisquare of dfden / dfden).
[[nodiscard]] SHARDARRAY_API Array f(const detail::Key& key, const Array& dfnum, const Array& dfden,
                                     const Shape& shape = {}, DType dtype = float32, Where w = Where::here());
/// Density proportional to exp(-|x|^p).
[[nodiscard]] SHARDARRAY_API Array generalized_normal(const detail::Key& key, double p,
                                                      const Shape& shape = {}, DType dtype = float32,
                                                      Where w = Where::here());
/// Uniformly distributed points of the unit ball in the p-norm: [shape.., d]. Throws ShapeError for d < 0.
[[nodiscard]] SHARDARRAY_API Array ball(const detail::Key& key, std::int64_t d, double p = 2,
                                        const Shape& shape = {}, DType dtype = float32,
                                        Where w = Where::here());
/// The number of events if lam are expected; lam is taken as float32. Of any dtype but bool, which throws DTypeError; -1 if lam is
/// negative or NaN. Sources: D. Knuth; W. Hormann (1993).
[[nodiscard]] SHARDARRAY_API Array poisson(const detail::Key& key, const Array& lam, const Shape& shape = {},
                                           DType dtype = int32, Where w = Where::here());
/// The number of successes in n trials of probability p, floating; NaN for a negative n and for a p below 0 or NaN. Source: W. Hormann
/// (1993).
[[nodiscard]] SHARDARRAY_API Array binomial(const detail::Key& key, const Array& n, const Array& p,
                                            const Shape& shape = {}, DType dtype = float32,
                                            Where w = Where::here());
/// The number of times each outcome occurs in n trials, with probabilities p along the last axis: p [a.., k] -> [a.., k]; n is broadcast
/// to a... Throws ShapeError for a scalar p.
[[nodiscard]] SHARDARRAY_API Array multinomial(const detail::Key& key, const Array& n, const Array& p,
                                               DType dtype = float32, Where w = Where::here());

}  // namespace shardarray::random
