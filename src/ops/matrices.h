// What functions of matrices share. A matrix is the last two dimensions.
#pragma once
#include <initializer_list>
#include <string>
#include <vector>

#include "ops/api.h"
#include "ops/rules.h"

namespace shardarray {

namespace rules {

/// A letter for each of the last dimensions of operands and results, "ij,iK->iK": one letter is one factor, whole if it is small.
/// The dimensions in front of them are the same in all and may be cut. The product of all letters is what the op's work grows with.
Rule matrices_rule(const Call& c, const std::string& letters);
/// Throws InternalError unless all operands have the batch of the first one, behind which they have these ranks.
void need_matrices(const Call& c, std::initializer_list<std::size_t> ranks);

}  // namespace rules

namespace matrices {

/// Sizes from the last dimension on: 1 is the number of columns, 2 of rows.
inline std::int64_t size_from_last(const Array& x, std::size_t d) { return x.shape()[x.shape().size() - d]; }
/// The dimensions in front of the last `rank` ones.
Shape batch_of(const Shape& shape, std::size_t rank);
/// Rows and columns exchanged.
Array turned(const Array& x);
/// The same of the conjugate numbers: x^H, of real numbers x^T.
Array adjoint(const Array& x);
/// Columns lo .. hi; rows lo .. hi.
Array columns(const Array& x, std::int64_t lo, std::int64_t hi);
Array rows(const Array& x, std::int64_t lo, std::int64_t hi);
/// The diagonal, as a vector.
Array diagonal_of(const Array& x);
/// 1 on the diagonal, for every matrix of x.
Array identity_like(const Array& x);
/// x with zeros behind its rows and columns, up to these numbers.
Array extended(const Array& x, std::int64_t rows, std::int64_t columns);
/// (x + x^H) / 2.
Array symmetrized(const Array& x);

/// The operand as it is computed: floating or complex, 16-bit floats in float32. `result`: the dtype of what comes out. Throws ShapeError for
/// less than two dimensions.
Array operand(const char* function, const Array& a, WeakType& result);
/// The same of square matrices. Throws ShapeError for others.
Array square_operand(const char* function, const Array& a, WeakType& result);
/// The type of results that are real whatever the operand is: eigenvalues, norms.
WeakType real_type(WeakType result);
/// Throws ShapeError unless the last two sizes are equal.
void need_square(const char* function, const Array& a);

}  // namespace matrices

namespace primitive {

/// How triangular_solve reads its operands, as attrs.bits.
constexpr std::uint64_t left_side = 1, lower_triangle = 2, transposed_matrix = 4, unit_diagonal = 8;

Array triangular_solve(const Array& a, const Array& b, std::uint64_t bits);
/// lu, pivots, permutation.
Arrays lu(const Array& a);
/// X with A X = B, or A^T X = B; the first operands are those of lu(stop_gradient(a)). `a` is there for the derivative.
Array lu_solve(const Array& lu, const Array& pivots, const Array& b, const Array& a, bool transposed = false);

/// Eigenvalues; as attrs.bits: and eigenvectors, of the lower triangle.
constexpr std::uint64_t eigenvectors = 1, of_lower_triangle = 2;
Arrays eigh(const Array& a, std::uint64_t bits);
/// Singular values; as attrs.bits: and U and V^H, which are square.
constexpr std::uint64_t singular_vectors = 1, full_matrices = 2;
Arrays svd(const Array& a, std::uint64_t bits);

}  // namespace primitive
}  // namespace shardarray
