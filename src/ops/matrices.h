// Shared by functions of matrices. A matrix is the last two dimensions.
#pragma once
#include <initializer_list>
#include <string>
#include <vector>

#include "ops/api.h"
#include "ops/rules.h"

namespace shardarray {

namespace rules {

/// Letters for the last dimensions of operands and results, "ij,iK->iK": one letter is one factor, which must not be sharded if lower-case.
/// The leading dimensions are the same in all and may be sharded. The work grows with the product of all letters.
Rule matrices_rule(const Call& c, const std::string& letters);
/// Throws InternalError unless all operands have the first one's batch, followed by these ranks.
void need_matrices(const Call& c, std::initializer_list<std::size_t> ranks);

}  // namespace rules

namespace matrices {

/// Sizes counted from the last dimension: 1 is the number of columns, 2 of rows.
inline std::int64_t size_from_last(const Array& x, std::size_t d) { return x.shape()[x.shape().size() - d]; }
/// The dimensions before the last `rank` ones.
Shape batch_of(const Shape& shape, std::size_t rank);
/// The matrix transpose.
Array turned(const Array& x);
/// The conjugate transpose x^H; x^T for real numbers.
Array adjoint(const Array& x);
/// Columns lo .. hi; rows lo .. hi.
Array columns(const Array& x, std::int64_t lo, std::int64_t hi);
Array rows(const Array& x, std::int64_t lo, std::int64_t hi);
/// The diagonal as a vector.
Array diagonal_of(const Array& x);
/// Identity matrices of x's shape.
Array identity_like(const Array& x);
/// x zero-padded to these numbers of rows and columns.
Array extended(const Array& x, std::int64_t rows, std::int64_t columns);
/// (x + x^H) / 2.
Array symmetrized(const Array& x);

/// The operand in the dtype of the computation: floating or complex, 16-bit floats in float32. `result`: the dtype of the result. Throws
/// ShapeError for fewer than two dimensions.
Array operand(const char* function, const Array& a, WeakType& result);
/// The same for square matrices. Throws ShapeError for others.
Array square_operand(const char* function, const Array& a, WeakType& result);
/// The type of results that are always real: eigenvalues, norms.
WeakType real_type(WeakType result);
/// Throws ShapeError unless the last two sizes are equal.
void need_square(const char* function, const Array& a);

}  // namespace matrices

namespace primitive {

/// How triangular_solve reads its operands, in attrs.bits.
constexpr std::uint64_t left_side = 1, lower_triangle = 2, transposed_matrix = 4, unit_diagonal = 8;

Array triangular_solve(const Array& a, const Array& b, std::uint64_t bits);
/// lu, pivots, permutation.
Arrays lu(const Array& a);
/// X with A X = B, or A^T X = B; the first operands are those of lu(stop_gradient(a)). `a` is needed for the derivative.
Array lu_solve(const Array& lu, const Array& pivots, const Array& b, const Array& a, bool transposed = false);

/// Eigenvalues; attrs.bits: also eigenvectors; read the lower triangle.
constexpr std::uint64_t eigenvectors = 1, of_lower_triangle = 2;
Arrays eigh(const Array& a, std::uint64_t bits);
/// Singular values; attrs.bits: also U and V^H; make them square.
constexpr std::uint64_t singular_vectors = 1, full_matrices = 2;
Arrays svd(const Array& a, std::uint64_t bits);

}  // namespace primitive
}  // namespace shardarray
