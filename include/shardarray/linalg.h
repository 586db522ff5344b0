// Matrix factorisations and solvers, with the names and definitions of `jnp.linalg` and `jax.scipy.linalg`: the last two dimensions are a
// matrix, leading ones a batch of any shape. A sharded batch stays in place, every device handling its own matrices; a sharded matrix is
// gathered. Integers and bool become floating as in JAX; 16-bit floats are computed in float32 and rounded once. All functions accept
// complex matrices: ^H is the conjugate transpose, ^T for real ones; eigenvalues, singular values, norms and logarithms are real;
// derivatives follow JAX's convention for complex functions. LAPACK does the work, for CUDA devices on the host, which waits (Error
// without one).
#pragma once
#include <optional>

#include "shardarray/ops.h"
#include "shardarray/products.h"
#include "shardarray/rearrange.h"
#include "shardarray/statistics.h"

namespace shardarray::linalg {

// Also in numpy.linalg.
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
  bool upper = false;            ///< U with A = U^H U instead of L
  bool symmetrize_input = true;  ///< use (A + A^H) / 2; otherwise only the lower triangle is read
};
/// The Cholesky factor L of [.., n, n], lower triangular with A = L L^H, for a Hermitian positive definite A. Otherwise the triangle is
/// NaN; if A contains NaN, whatever depends on it. Throws ShapeError for matrices that are not square.
inline constexpr struct SHARDARRAY_API cholesky_fn {
  [[nodiscard]] Array operator()(const Array& a, const CholeskyOptions& o = {},
                                 Where w = Where::here()) const;
} cholesky{};

/// The result of lu.
struct LuResult {
  Array lu;           ///< [.., m, n]: the unit lower triangular L below the diagonal, U on and above it
  Array pivots;       ///< int32 [.., min(m, n)]: row i was exchanged with row pivots[i], in sequence
  Array permutation;  ///< int32 [.., m]: A[permutation] = L U
};
/// The LU factorisation of [.., m, n] with row exchanges, packed as in `jax.lax.linalg.lu`. Not differentiable if U is singular. Throws
/// ShapeError for fewer than two dimensions.
inline constexpr struct SHARDARRAY_API lu_fn {
  [[nodiscard]] LuResult operator()(const Array& a, Where w = Where::here()) const;
} lu{};

/// Which columns of Q qr returns: min(m, n), or all m, a full basis.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class QrMode : std::uint8_t { reduced, complete };
#pragma GCC diagnostic pop
/// The result of qr: k is min(m, n), or m if complete.
struct QrResult {
  Array q;  ///< [.., m, k], orthonormal columns
  Array r;  ///< [.., k, n], zeros below the diagonal
};
/// A = Q R of [.., m, n]. Signs are LAPACK's, as in JAX: R has a real diagonal. Throws ShapeError for fewer than two dimensions.
inline constexpr struct SHARDARRAY_API qr_fn {
  [[nodiscard]] QrResult operator()(const Array& a, QrMode mode = QrMode::reduced,
                                    Where w = Where::here()) const;
} qr{};

/// Options of eigh and eigvalsh: `eigh(a, {.lower = false})`.
struct EighOptions {
  bool lower = true;             ///< which triangle is read, unless both are
  bool symmetrize_input = true;  ///< use (A + A^H) / 2
};
/// The result of eigh.
struct EighResult {
  Array eigenvalues;  ///< [.., n], ascending
  Array
      eigenvectors;  ///< [.., n, n]: column i belongs to eigenvalue i, and has length 1; its phase is LAPACK's
};
/// Eigenvalues and eigenvectors of Hermitian matrices [.., n, n]; NaN if an element is not finite. Derivatives of the eigenvectors assume
/// distinct eigenvalues. Throws ShapeError for matrices that are not square.
inline constexpr struct SHARDARRAY_API eigh_fn {
  [[nodiscard]] EighResult operator()(const Array& a, const EighOptions& o = {},
                                      Where w = Where::here()) const;
} eigh{};
/// Eigenvalues only, which is faster. Throws as eigh.
inline constexpr struct SHARDARRAY_API eigvalsh_fn {
  [[nodiscard]] Array operator()(const Array& a, const EighOptions& o = {}, Where w = Where::here()) const;
} eigvalsh{};

/// Options of svd: `svd(a, {.full_matrices = false})`.
struct SvdOptions {
  bool full_matrices = true;  ///< U and V^H are square
  bool compute_uv = true;     ///< otherwise only singular values
};
/// The result of svd: k is min(m, n).
struct SvdResult {
  Array u;   ///< [.., m, m], or [.., m, k]; absent without compute_uv
  Array s;   ///< [.., k], descending
  Array vh;  ///< [.., n, n], or [.., k, n]; absent without compute_uv
};
/// A = U diag(s) V^H of [.., m, n]; NaN if an element is not finite. Derivatives of U and V assume distinct singular values; with
/// full_matrices, non-square matrices have none (Error). Throws ShapeError for fewer than two dimensions.
inline constexpr struct SHARDARRAY_API svd_fn {
  [[nodiscard]] SvdResult operator()(const Array& a, const SvdOptions& o = {}, Where w = Where::here()) const;
} svd{};
/// Singular values only, [.., min(m, n)]. Throws ShapeError for fewer than two dimensions.
inline constexpr struct SHARDARRAY_API svdvals_fn {
  [[nodiscard]] Array operator()(const Array& a, Where w = Where::here()) const;
} svdvals{};

// ---------------------------------------------------------------- linear systems
/// Solves A X = B by an LU factorisation: [.., n, n] and [n] -> [.., n], or [.., n, n] and [.., n, k] -> [.., n, k], batches broadcast.
/// Infinite or NaN if A is singular. Derivatives reuse the factorisation. Throws ShapeError for matrices that are not square and for
/// other numbers of rows.
inline constexpr struct SHARDARRAY_API solve_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} solve{};

/// Options of triangular_solve: `triangular_solve(a, b, {.left_side = true, .lower = true})`.
struct TriangularSolveOptions {
  bool left_side = false;      ///< op(A) X = B; otherwise X op(A) = B
  bool lower = false;          ///< which triangle of A is read
  bool transpose_a = false;    ///< op(A) is A^T
  bool conjugate_a = false;    ///< conjugates A: with transpose_a op(A) is A^H
  bool unit_diagonal = false;  ///< the diagonal of A is taken as 1 and not read
};
/// As `jax.lax.linalg.triangular_solve`: X for a triangular A [.., n, n] and B [.., n, k] or, with A on the right, [.., k, n]; with one
/// dimension less, B is a vector. Batches broadcast. The columns of B (rows, with A on the right) may be sharded. Throws ShapeError for
/// matrices that are not square and for other numbers of rows.
inline constexpr struct SHARDARRAY_API triangular_solve_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, const TriangularSolveOptions& o = {},
                                 Where w = Where::here()) const;
} triangular_solve{};

/// Options of solve_triangular: `solve_triangular(a, b, {.lower = true})`.
struct SolveTriangularOptions {
  bool trans = false;          ///< A^T X = B
  bool conjugate = false;      ///< conjugates A: with trans A^H X = B, JAX's trans = 2
  bool lower = false;          ///< which triangle of A is read
  bool unit_diagonal = false;  ///< the diagonal of A is taken as 1 and not read
};
/// As `jax.scipy.linalg.solve_triangular`: solves A X = B with shapes as for solve. Throws ShapeError as solve.
inline constexpr struct SHARDARRAY_API solve_triangular_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, const SolveTriangularOptions& o = {},
                                 Where w = Where::here()) const;
} solve_triangular{};

/// The inverse of [.., n, n]: solve with the identity. Throws ShapeError for matrices that are not square.
inline constexpr struct SHARDARRAY_API inv_fn {
  [[nodiscard]] Array operator()(const Array& a, Where w = Where::here()) const;
} inv{};

/// The inverse with respect to tensordot: if the product of the first `ind` sizes and that of the others are both n, the array of shape
/// (others.., first..) that is the inverse as a matrix [n, n]. Throws ShapeError if these products differ, and for an ind that is not a
/// valid number of dimensions.
inline constexpr struct SHARDARRAY_API tensorinv_fn {
  [[nodiscard]] Array operator()(const Array& a, std::int64_t ind = 2, Where w = Where::here()) const;
} tensorinv{};
/// Solves tensordot(A, X, X.ndim()) = B: the first dimensions of A are those of B, the others those of X; first, `axes` of A are moved to
/// the end. Throws ShapeError if that does not make A a square matrix.
inline constexpr struct SHARDARRAY_API tensorsolve_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, const Shape& axes = {},
                                 Where w = Where::here()) const;
} tensorsolve{};

/// Options of pinv: `pinv(a, {.rtol = 1e-5})`.
struct PinvOptions {
  /// Singular values up to this fraction of the largest one are treated as 0. Default: 10 max(m, n) eps.
  std::optional<double> rtol = std::nullopt;
  bool hermitian = false;  ///< A is Hermitian: uses its eigenvalues
};
/// The pseudo-inverse [.., m, n] -> [.., n, m], by singular values. Throws ShapeError for fewer than two dimensions, and for hermitian
/// matrices that are not square.
inline constexpr struct SHARDARRAY_API pinv_fn {
  [[nodiscard]] Array operator()(const Array& a, const PinvOptions& o = {}, Where w = Where::here()) const;
} pinv{};

/// Options of lstsq: `lstsq(a, b, {.rcond = 1e-5})`.
struct LstsqOptions {
  /// Singular values below this fraction of the largest one are treated as 0. Default: max(m, n) eps; negative: eps.
  std::optional<double> rcond = std::nullopt;
};
/// The result of lstsq.
struct LstsqResult {
  Array x;          ///< [n] or [n, k]: the solution of minimal norm
  Array residuals;  ///< [k] (for a vector [1]): the sums of |B - A X|^2, always
  Array rank;       ///< int32: the number of non-zero singular values
  Array s;          ///< [min(m, n)]: the singular values
};
/// The least-squares solution of A X = B for a matrix [m, n] and [m] or [m, k], by singular values. Throws ShapeError for other ranks and
/// numbers of rows.
inline constexpr struct SHARDARRAY_API lstsq_fn {
  [[nodiscard]] LstsqResult operator()(const Array& a, const Array& b, const LstsqOptions& o = {},
                                       Where w = Where::here()) const;
} lstsq{};

/// Options of matrix_rank: `matrix_rank(a, {.tol = 1e-3})`.
struct MatrixRankOptions {
  /// Singular values above this are counted. Default: max(m, n) eps times the largest one.
  std::optional<double> tol = std::nullopt;
  bool hermitian = false;  ///< A is Hermitian: uses its eigenvalues
};
/// The rank, [.., m, n] -> int32 [..]: the number of singular values counted; with fewer than two dimensions, whether an element is
/// non-zero. Throws ShapeError for hermitian matrices that are not square.
inline constexpr struct SHARDARRAY_API matrix_rank_fn {
  [[nodiscard]] Array operator()(const Array& a, const MatrixRankOptions& o = {},
                                 Where w = Where::here()) const;
} matrix_rank{};

/// Options of matrix_norm: `matrix_norm(a, {.ord = 2})`.
struct MatrixNormOptions {
  /// 1, -1: the largest, the smallest column sum of |A|; infinity, -infinity: row sum; 2, -2: the largest, the smallest singular value.
  /// None: the square root of the sum of |A|^2.
  std::optional<double> ord = std::nullopt;
  bool nuclear = false;   ///< the sum of the singular values
  bool keepdims = false;  ///< keep the last two dimensions with size 1
};
/// The norm, [.., m, n] -> [..], floating. Throws ShapeError for fewer than two dimensions, Error for other orders, and for an order with
/// nuclear.
inline constexpr struct SHARDARRAY_API matrix_norm_fn {
  [[nodiscard]] Array operator()(const Array& a, const MatrixNormOptions& o = {},
                                 Where w = Where::here()) const;
} matrix_norm{};

/// Options of cond: `cond(a, {.ord = 1})`.
struct CondOptions {
  double ord = 2;  ///< of the norm, as in MatrixNormOptions
};
/// The condition number, [.., m, n] -> [..], real: the norm of A times that of its inverse. For order 2 the largest singular value
/// divided by the smallest, for -2 the inverse. Infinite if A is singular, NaN if an element is. Throws ShapeError for empty matrices
/// and, except for these two orders, for matrices that are not square, Error for other orders.
inline constexpr struct SHARDARRAY_API cond_fn {
  [[nodiscard]] Array operator()(const Array& a, const CondOptions& o = {}, Where w = Where::here()) const;
} cond{};

// ---------------------------------------------------------------- determinants
/// The result of slogdet: the sign of the determinant (0 if it is 0; for complex matrices its phase, of absolute value 1) and the
/// logarithm of its absolute value.
struct SlogdetResult {
  Array sign, logabsdet;  ///< [..]
};
/// Sign and logarithm of the determinants of [.., n, n], which might over- or underflow. Throws ShapeError for matrices that are not
/// square.
inline constexpr struct SHARDARRAY_API slogdet_fn {
  [[nodiscard]] SlogdetResult operator()(const Array& a, Where w = Where::here()) const;
} slogdet{};
/// The determinant, [.., n, n] -> [..]; 1 for an empty matrix. The gradient is the cofactor matrix; it is 0 for a rank deficiency of more
/// than one. Throws ShapeError for matrices that are not square.
inline constexpr struct SHARDARRAY_API det_fn {
  [[nodiscard]] Array operator()(const Array& a, Where w = Where::here()) const;
} det{};

// ---------------------------------------------------------------- matrix functions
/// Options of expm: `expm(a, {.max_squarings = 8})`.
struct ExpmOptions {
  std::int64_t max_squarings = 16;  ///< how often A may be halved
};
/// The matrix exponential, [.., n, n] -> exp(A) of the same shape, by scaling and squaring: A is halved until its 1-norm is at most 5.37
/// (3.93 in float32); NaN if that takes more than max_squarings. That many matrix products are computed, whatever A is. Throws ShapeError
/// for matrices that are not square, Error for a negative number of squarings.
inline constexpr struct SHARDARRAY_API expm_fn {
  [[nodiscard]] Array operator()(const Array& a, const ExpmOptions& o = {}, Where w = Where::here()) const;
} expm{};

}  // namespace shardarray::linalg
