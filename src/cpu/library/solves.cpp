// Solves linear equations with triangular matrices.
#include <bitset>
#include <utility>

#include "cpu/library/combined.h"
#include "cpu/library/matrices.h"

namespace shardarray {

namespace {

/// Right-hand sides solved at once. A fixed unit, whatever the number of workers: it shows in the last bits.
constexpr int side_block = 128;

/// op(A) X = B, or X op(A) = B if A is on the right; n x n, row-major.
struct Triangle {
  bool is_left = true, is_lower = false, is_transposed = false, has_unit_diagonal = false;
};

/// Overwrites B, with m rows, k columns and row stride `distance`, by X. To LAPACK a row-major matrix is its transpose: sides and triangles
/// are swapped.
template <class T>
void solve_triangle(const LapackOf<T>& library, const Triangle& t, const T* a, int n, T* b, int m, int k,
                    int distance) {
  const T one = 1;
  const int lda = leading(n), ldb = leading(distance);
  library.trsm(t.is_left ? "R" : "L", t.is_lower ? "U" : "L", t.is_transposed ? "T" : "N",
               t.has_unit_diagonal ? "U" : "N", &k, &m, &one, a, &lda, b, &ldb, 1, 1, 1, 1);
}

// Complex numbers by the textbook formula: the operator checks for infinities that became NaN, which takes 100 times as long.
template <class T> T product(T a, T b) {
  if constexpr (is_complex_number<T>)
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  else return a * b;
}

/// The same element by element: x_i = (b_i - sum of a_ij x_j) / a_ii, one j after the other.
template <class T> void substitute(const Triangle& t, const T* a, int n, T* b, int m, int k, int distance) {
  const bool is_turned = t.is_transposed == t.is_left, is_forward = t.is_lower != is_turned;
  const auto element = [&](int i, int j) {
    return is_turned ? a[std::int64_t{j} * n + i] : a[std::int64_t{i} * n + j];
  };
  const auto subtract = [](T* x, const T* y, std::int64_t count, T factor) {
    combine_each(x, y, count, [factor](T p, T q) { return p - product(factor, q); });
  };
  for (int s = 0; s < n; s++) {
    const int j = is_forward ? s : n - 1 - s;
    const int first = is_forward ? j + 1 : 0, last = is_forward ? n : j;  // what x_j is subtracted from
    if (t.is_left) {
      T* const x = b + std::int64_t{j} * distance;
      for (int o = 0; !t.has_unit_diagonal && o < k; o++) x[o] /= element(j, j);
      for (int i = first; i < last; i++) subtract(b + std::int64_t{i} * distance, x, k, element(i, j));
    } else {
      for (int o = 0; o < m; o++) {
        T* const row = b + std::int64_t{o} * distance;
        if (!t.has_unit_diagonal) row[j] /= element(j, j);
        if (is_turned) subtract(row + first, a + std::int64_t{j} * n + first, last - first, row[j]);
        else
          for (int i = first; i < last; i++) row[i] -= product(row[j], element(i, j));
      }
    }
  }
}

/// The right-hand sides of one matrix: columns of B (rows if A is on the right).
template <class T> struct Sides {
  Matrices b;
  bool is_left = true;
  int blocks() const { return ((is_left ? b.n : b.m) + side_block - 1) / side_block; }
  /// Copies block `k` and calls f(first element, rows, columns, solver). BLAS kernels mix non-finite values into unrelated numbers: sides
  /// that are non-finite afterwards are solved again element by element, independently of their neighbours.
  template <class F> void solve(const LapackOf<T>& library, const T* from, T* to, int k, const F& f) const {
    const int first = k * side_block, size = std::min(side_block, (is_left ? b.n : b.m) - first);
    const auto offset = [&](int side) { return std::int64_t{first + side} * (is_left ? 1 : b.n); };
    // Sides [begin, end) of the block.
    const auto part = [&](int begin, int end, const auto& how) {
      const int rows = is_left ? b.m : end - begin, columns = is_left ? end - begin : b.n;
      for (std::int64_t i = 0; i < rows; i++)
        std::copy_n(from + offset(begin) + i * b.n, columns, to + offset(begin) + i * b.n);
      f(to + offset(begin), rows, columns, how);
    };
    part(0, size, [&](auto&&... args) { solve_triangle(library, args...); });
    std::bitset<side_block> is_finite;
    is_finite.set();
    const int rows = is_left ? b.m : size, columns = is_left ? size : b.n;
    for (int i = 0; i < rows; i++) {
      const T* const row = to + offset(0) + std::int64_t{i} * b.n;
      if (all_finite(row, columns)) continue;
      for (int j = 0; j < columns; j++)
        if (!all_finite(row + j, 1)) is_finite.reset(static_cast<std::size_t>(is_left ? j : i));
    }
    for (int begin = 0, end; begin < size; begin = end + 1) {
      for (end = begin; end < size && !is_finite[static_cast<std::size_t>(end)];) end++;
      if (end > begin) part(begin, end, [](auto&&... args) { substitute(args...); });
    }
  }
};

template <class T> double solving_ns(const Matrices& a, const Matrices& b) {
  const double flops = static_cast<double>(a.n) * static_cast<double>(b.elements());
  return static_cast<double>(b.count) * (500 + arithmetic_ns<T>(flops));
}

template <class T> LibraryPlan triangular_plan(const LibraryCall::Item& item) {
  const char* const kernel = "triangular_solve";
  const Matrices a = matrices_of(kernel, item.in_shapes[0], 2), b = matrices_of(kernel, item.in_shapes[1], 2);
  const Triangle triangle{item.params[0] != 0, item.params[1] != 0, item.params[2] != 0, item.params[3] != 0};
  const Sides<T> sides{b, triangle.is_left};
  const std::int64_t units = b.elements() == 0 ? 0 : b.count * sides.blocks();
  const auto run = [=, library = lapack(kernel).of<T>(), in = item.in, out = item.out[0]](
                       void* const* bases, std::int64_t begin, std::int64_t end) {
    const BlasTurn turn;
    for (std::int64_t u = begin; u < end; u++) {
      const std::int64_t k = u / sides.blocks();
      const T* const matrix = elements_at<T>(bases, in[0], k * a.elements());
      sides.solve(library, elements_at<T>(bases, in[1], k * b.elements()),
                  elements_at<T>(bases, out, k * b.elements()), static_cast<int>(u % sides.blocks()),
                  [&](T* x, int rows, int columns, const auto& solve) {
                    solve(triangle, matrix, a.n, x, rows, columns, b.n);
                  });
    }
  };
  return {units, solving_ns<T>(a, b), run};
}

/// Applies the factorization's row exchanges to B, or undoes them.
template <class T>
void exchange_rows(const std::int32_t* pivots, int n, bool back, T* b, int columns, int distance) {
  for (int k = 0; k < n; k++) {
    const int i = back ? n - 1 - k : k, j = pivots[i];
    if (i != j)
      std::swap_ranges(b + std::int64_t{i} * distance, b + std::int64_t{i} * distance + columns,
                       b + std::int64_t{j} * distance);
  }
}

template <class T> LibraryPlan lu_solve_plan(const LibraryCall::Item& item) {
  const char* const kernel = "lu_solve";
  const Matrices a = matrices_of(kernel, item.in_shapes[0], 2), b = matrices_of(kernel, item.in_shapes[2], 2);
  const bool is_transposed = item.params[0] != 0;
  const Sides<T> sides{b, true};
  const std::int64_t units = b.elements() == 0 ? 0 : b.count * sides.blocks();
  const auto run = [=, library = lapack(kernel).of<T>(), in = item.in, out = item.out[0]](
                       void* const* bases, std::int64_t begin, std::int64_t end) {
    const BlasTurn turn;
    const Triangle l{true, true, is_transposed, true}, r{true, false, is_transposed, false};
    for (std::int64_t u = begin; u < end; u++) {
      const std::int64_t k = u / sides.blocks();
      const T* const lu = elements_at<T>(bases, in[0], k * a.elements());
      const auto* const pivots = elements_at<std::int32_t>(bases, in[1], k * a.n);
      sides.solve(library, elements_at<T>(bases, in[2], k * b.elements()),
                  elements_at<T>(bases, out, k * b.elements()), static_cast<int>(u % sides.blocks()),
                  [&](T* x, int rows, int columns, const auto& solve) {
                    if (!is_transposed) exchange_rows(pivots, a.n, false, x, columns, b.n);
                    solve(is_transposed ? r : l, lu, a.n, x, rows, columns, b.n);
                    solve(is_transposed ? l : r, lu, a.n, x, rows, columns, b.n);
                    if (is_transposed) exchange_rows(pivots, a.n, true, x, columns, b.n);
                  });
    }
  };
  return {units, 2 * solving_ns<T>(a, b), run};
}

}  // namespace

LibraryPlan plan_triangular_solve(const LibraryCall& call, const LibraryCall::Item& item) {
  return with_lapack_type("triangular_solve", call.in_types[0],
                          [&](auto t) { return triangular_plan<decltype(t)>(item); });
}
LibraryPlan plan_lu_solve(const LibraryCall& call, const LibraryCall::Item& item) {
  return with_lapack_type("lu_solve", call.in_types[0],
                          [&](auto t) { return lu_solve_plan<decltype(t)>(item); });
}

}  // namespace shardarray
