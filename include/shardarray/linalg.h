// Factorisations of matrices and what is solved with them, as `jnp.linalg` and `jax.scipy.linalg` name and define it: the last two
// dimensions are a matrix, those in front are a batch of any shape. A batch that is cut stays where it is, every device has its own
// matrices; a matrix that is cut is gathered. Integers and bool become floating as in JAX, 16-bit floats are computed in float32 and
// rounded once. Complex matrices are taken by all functions: ^H is the conjugate transpose, of real numbers ^T; eigenvalues, singular
// values, norms and logarithms are real; derivatives are JAX's, as of all complex functions. LAPACK computes, for CUDA devices on the
// host, which waits (Error without one).
#pragma once
#include <optional>

#include "shardarray/ops.h"
#include "shardarray/products.h"
#include "shardarray/rearrange.h"
#include "shardarray/statistics.h"

namespace shardarray::linalg {

// numpy.linalg has these too.
using shardarray::block_diag;
using shardarray::cross;
using shardarray::diagonal;
using shardarray::matmul;
using shardarray::matrix_power;
using shardarray::matrix_transpose;
using shardarray::multi_dot;
using shardarray::norm;
using shardarray::outer;
using shardarray::tensordot;
using shardarray::trace;
using shardarray::vecdot;
using shardarray::vector_norm;

// ---------------------------------------------------------------- factorisations
/// Options of cholesky: `cholesky(a, {.upper = true})`.
struct CholeskyOptions {
  bool upper = false;            ///< U with A = U^H U in place of L
  bool symmetrize_input = true;  ///< takes (A + A^H) / 2; else only the lower triangle is read
};
/// [.., n, n] -> L of that shape, lower triangular, with A = L L^H for a Hermitian A that is positive definite. Of another A the
/// triangle is NaN; of one with NaN what depends on it. Throws ShapeError for matrices that are not square.
inline constexpr struct SHARDARRAY_API cholesky_fn {
  [[nodiscard]] Array operator()(const Array& a, const CholeskyOptions& o = {},
                                 Where w = Where::here()) const;
} cholesky{};

/// What lu gives.
struct LuResult {
  Array lu;           ///< [.., m, n]: L below the diagonal, whose own diagonal is 1, and U on and above it
  Array pivots;       ///< int32 [.., min(m, n)]: row i was exchanged with row pivots[i], one after the other
  Array permutation;  ///< int32 [.., m]: A[permutation] = L U
};
/// The LU factorisation of [.., m, n] with row exchanges, packed as in `jax.lax.linalg.lu`. No derivative where U is singular. Throws
/// ShapeError for less than two dimensions.
inline constexpr struct SHARDARRAY_API lu_fn {
  [[nodiscard]] LuResult operator()(const Array& a, Where w = Where::here()) const;
} lu{};

/// Which columns of Q qr gives: min(m, n), or all m, which are a basis.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class QrMode : std::uint8_t { reduced, complete };
#pragma GCC diagnostic pop
/// What qr gives: k is min(m, n), complete m.
struct QrResult {
  Array q;  ///< [.., m, k], columns orthonormal
  Array r;  ///< [.., k, n], zeros below the diagonal
};
/// A = Q R of [.., m, n]. The signs are LAPACK's, as in JAX: the diagonal of R is real. Throws ShapeError for less than two dimensions.
inline constexpr struct SHARDARRAY_API qr_fn {
  [[nodiscard]] QrResult operator()(const Array& a, QrMode mode = QrMode::reduced,
                                    Where w = Where::here()) const;
} qr{};

/// Options of eigh and eigvalsh: `eigh(a, {.lower = false})`.
struct EighOptions {
  bool lower = true;             ///< which triangle is read, if not both are
  bool symmetrize_input = true;  ///< takes (A + A^H) / 2
};
/// What eigh gives.
struct EighResult {
  Array eigenvalues;  ///< [.., n], rising
  Array
      eigenvectors;  ///< [.., n, n]: column i belongs to eigenvalue i, and has length 1; its phase is LAPACK's
};
/// The eigenvalues and eigenvectors of Hermitian matrices [.., n, n]; NaN where an element is not finite. The derivatives of the
/// eigenvectors are those of eigenvalues that differ. Throws ShapeError for matrices that are not square.
inline constexpr struct SHARDARRAY_API eigh_fn {
  [[nodiscard]] EighResult operator()(const Array& a, const EighOptions& o = {},
                                      Where w = Where::here()) const;
} eigh{};
/// The eigenvalues alone, which takes less. Throws as eigh.
inline constexpr struct SHARDARRAY_API eigvalsh_fn {
  [[nodiscard]] Array operator()(const Array& a, const EighOptions& o = {}, Where w = Where::here()) const;
} eigvalsh{};

/// Options of svd: `svd(a, {.full_matrices = false})`.
struct SvdOptions {
  bool full_matrices = true;  ///< U and V^H are square
  bool compute_uv = true;     ///< else there are singular values only
};
/// What svd gives: k is min(m, n).
struct SvdResult {
  Array u;   ///< [.., m, m], or [.., m, k]; absent without compute_uv
  Array s;   ///< [.., k], falling
  Array vh;  ///< [.., n, n], or [.., k, n]; absent without compute_uv
};
/// A = U diag(s) V^H of [.., m, n]; NaN where an element is not finite. The derivatives of U and V are those of singular values that
/// differ; of full matrices that are not square they have none (Error). Throws ShapeError for less than two dimensions.
inline constexpr struct SHARDARRAY_API svd_fn {
  [[nodiscard]] SvdResult operator()(const Array& a, const SvdOptions& o = {}, Where w = Where::here()) const;
} svd{};
/// The singular values alone, [.., min(m, n)]. Throws ShapeError for less than two dimensions.
inline constexpr struct SHARDARRAY_API svdvals_fn {
  [[nodiscard]] Array operator()(const Array& a, Where w = Where::here()) const;
} svdvals{};

// ---------------------------------------------------------------- equations
/// X with A X = B, by an LU factorisation: [.., n, n] and [n] -> [.., n], or [.., n, n] and [.., n, k] -> [.., n, k], batches
/// broadcast. Infinite or NaN where A is singular. Its derivatives use the same factorisation. Throws ShapeError for matrices that
/// are not square and for other numbers of rows.
inline constexpr struct SHARDARRAY_API solve_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} solve{};

/// Options of triangular_solve: `triangular_solve(a, b, {.left_side = true, .lower = true})`.
struct TriangularSolveOptions {
  bool left_side = false;      ///< op(A) X = B; else X op(A) = B
  bool lower = false;          ///< which triangle of A is read
  bool transpose_a = false;    ///< op(A) is A^T
  bool conjugate_a = false;    ///< A counts as its conjugate: with transpose_a op(A) is A^H
  bool unit_diagonal = false;  ///< the diagonal of A counts as 1 and is not read
};
/// As `jax.lax.linalg.triangular_solve`: X for a triangular A [.., n, n] and B [.., n, k] or, where A stands right, [.., k, n];
/// one dimension less is a vector. Batches broadcast. The columns of B (rows, where A stands right) may be cut. Throws ShapeError for
/// matrices that are not square and for other numbers of rows.
inline constexpr struct SHARDARRAY_API triangular_solve_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, const TriangularSolveOptions& o = {},
                                 Where w = Where::here()) const;
} triangular_solve{};

/// Options of solve_triangular: `solve_triangular(a, b, {.lower = true})`.
struct SolveTriangularOptions {
  bool trans = false;          ///< A^T X = B
  bool conjugate = false;      ///< A counts as its conjugate: with trans A^H X = B, JAX's trans = 2
  bool lower = false;          ///< which triangle of A is read
  bool unit_diagonal = false;  ///< the diagonal of A counts as 1 and is not read
};
/// As `jax.scipy.linalg.solve_triangular`: X with A X = B, shapes as of solve. Throws ShapeError as solve.
inline constexpr struct SHARDARRAY_API solve_triangular_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, const SolveTriangularOptions& o = {},
                                 Where w = Where::here()) const;
} solve_triangular{};

/// The inverse of [.., n, n]: solve of the identity. Throws ShapeError for matrices that are not square.
inline constexpr struct SHARDARRAY_API inv_fn {
  [[nodiscard]] Array operator()(const Array& a, Where w = Where::here()) const;
} inv{};

/// The inverse of tensordot: of an array whose first `ind` sizes have the product n, and the others too, the one of shape (others..,
/// first..) that is the inverse as a matrix [n, n]. Throws ShapeError for other products, and for an ind that is no number of
/// dimensions.
inline constexpr struct SHARDARRAY_API tensorinv_fn {
  [[nodiscard]] Array operator()(const Array& a, std::int64_t ind = 2, Where w = Where::here()) const;
} tensorinv{};
/// X with tensordot(A, X, X.ndim()) = B: the first dimensions of A are those of B, the others those of X; `axes` of A are put behind the
/// others first. Throws ShapeError where A is no square matrix so.
inline constexpr struct SHARDARRAY_API tensorsolve_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, const Shape& axes = {},
                                 Where w = Where::here()) const;
} tensorsolve{};

/// Options of pinv: `pinv(a, {.rtol = 1e-5})`.
struct PinvOptions {
  /// Singular values up to this part of the largest one count as 0. Default: 10 max(m, n) eps.
  std::optional<double> rtol = std::nullopt;
  bool hermitian = false;  ///< A is Hermitian: by its eigenvalues
};
/// [.., m, n] -> [.., n, m]: the pseudo-inverse, by singular values. Throws ShapeError for less than two dimensions, and for
/// hermitian matrices that are not square.
inline constexpr struct SHARDARRAY_API pinv_fn {
  [[nodiscard]] Array operator()(const Array& a, const PinvOptions& o = {}, Where w = Where::here()) const;
} pinv{};

/// Options of lstsq: `lstsq(a, b, {.rcond = 1e-5})`.
struct LstsqOptions {
  /// Singular values below this part of the largest one count as 0. Default: max(m, n) eps; negative: eps.
  std::optional<double> rcond = std::nullopt;
};
/// What lstsq gives.
struct LstsqResult {
  Array x;          ///< [n] or [n, k]: of all that are best the shortest
  Array residuals;  ///< [k] (of a vector [1]): the sums of |B - A X|^2, always
  Array rank;       ///< int32: how many singular values count
  Array s;          ///< [min(m, n)]: the singular values
};
/// The least squares of A X - B for a matrix [m, n] and [m] or [m, k], by singular values. Throws ShapeError for other ranks and
/// numbers of rows.
inline constexpr struct SHARDARRAY_API lstsq_fn {
  [[nodiscard]] LstsqResult operator()(const Array& a, const Array& b, const LstsqOptions& o = {},
                                       Where w = Where::here()) const;
} lstsq{};

/// Options of matrix_rank: `matrix_rank(a, {.tol = 1e-3})`.
struct MatrixRankOptions {
  /// Singular values above this count. Default: max(m, n) eps times the largest one.
  std::optional<double> tol = std::nullopt;
  bool hermitian = false;  ///< A is Hermitian: by its eigenvalues
};
/// [.., m, n] -> int32 [..]: how many singular values count; of what has less than two dimensions whether an element is not 0. Throws
/// ShapeError for hermitian matrices that are not square.
inline constexpr struct SHARDARRAY_API matrix_rank_fn {
  [[nodiscard]] Array operator()(const Array& a, const MatrixRankOptions& o = {},
                                 Where w = Where::here()) const;
} matrix_rank{};

/// Options of matrix_norm: `matrix_norm(a, {.ord = 2})`.
struct MatrixNormOptions {
  /// 1, -1: the largest, the smallest sum of a column of |A|; infinity, -infinity: of a row; 2, -2: the largest, the smallest singular
  /// value. None: the root of the sum of |A|^2.
  std::optional<double> ord = std::nullopt;
  bool nuclear = false;   ///< the sum of the singular values
  bool keepdims = false;  ///< the last two dimensions stay with size 1
};
/// [.., m, n] -> [..], floating. Throws ShapeError for less than two dimensions, Error for other orders, and for one beside nuclear.
inline constexpr struct SHARDARRAY_API matrix_norm_fn {
  [[nodiscard]] Array operator()(const Array& a, const MatrixNormOptions& o = {},
                                 Where w = Where::here()) const;
} matrix_norm{};

/// Options of cond: `cond(a, {.ord = 1})`.
struct CondOptions {
  double ord = 2;  ///< of the norm, as in MatrixNormOptions
};
/// [.., m, n] -> [..]: the condition number, real: the norm of A times that of its inverse. Of order 2 the largest singular value
/// divided by the smallest, of -2 the other way. Infinite where A is singular, NaN where an element is. Throws ShapeError for empty
/// matrices and, but for these two orders, for matrices that are not square, Error for other orders.
inline constexpr struct SHARDARRAY_API cond_fn {
  [[nodiscard]] Array operator()(const Array& a, const CondOptions& o = {}, Where w = Where::here()) const;
} cond{};

// ---------------------------------------------------------------- determinants
/// What slogdet gives: the sign of the determinant (0 where it is 0; of complex matrices its phase, a number of length 1) and the
/// logarithm of its absolute value.
struct SlogdetResult {
  Array sign, logabsdet;  ///< [..]
};
/// Sign and logarithm of the determinants of [.., n, n], which would over- or underflow. Throws ShapeError for matrices that are
/// not square.
inline constexpr struct SHARDARRAY_API slogdet_fn {
  [[nodiscard]] SlogdetResult operator()(const Array& a, Where w = Where::here()) const;
} slogdet{};
/// [.., n, n] -> [..]: the determinants; 1 of an empty matrix. The gradient is the matrix of cofactors; of a matrix that lacks more
/// than one rank it is 0. Throws ShapeError for matrices that are not square.
inline constexpr struct SHARDARRAY_API det_fn {
  [[nodiscard]] Array operator()(const Array& a, Where w = Where::here()) const;
} det{};

// ---------------------------------------------------------------- functions
/// Options of expm: `expm(a, {.max_squarings = 8})`.
struct ExpmOptions {
  std::int64_t max_squarings = 16;  ///< how often A may be halved
};
/// [.., n, n] -> exp(A) of the same shape, by scaling and squaring: A is halved until its 1-norm is at most 5.37 (3.93 in float32);
/// NaN where that takes more than max_squarings. So many matrix products are made, whatever A is. Throws ShapeError for matrices
/// that are not square, Error for a negative number of squarings.
inline constexpr struct SHARDARRAY_API expm_fn {
  [[nodiscard]] Array operator()(const Array& a, const ExpmOptions& o = {}, Where w = Where::here()) const;
} expm{};

}  // namespace shardarray::linalg
