// Solutions of linear equations by triangular matrices.
#include <utility>

#include "cpu/library/matrices.h"

namespace shardarray {

namespace {

/// Right-hand sides that are solved for at once. The unit, whatever the number of workers: how many there are shows in the last
/// bits.
constexpr int side_block = 128;

/// op(A) X = B, or X op(A) = B where A stands right; n x n row by row.
struct Triangle {
  bool is_left = true, is_lower = false, is_transposed = false, has_unit_diagonal = false;
};

/// X in the place of B, which has m rows and k columns, rows `distance` apart. Row by row a matrix is its transpose to LAPACK: the
/// sides are exchanged, and the triangles.
template <class T>
void solve_triangle(const LapackOf<T>& library, const Triangle& t, const T* a, int n, T* b, int m, int k,
                    int distance) {
  const T one = 1;
  const int lda = leading(n), ldb = leading(distance);
  library.trsm(t.is_left ? "R" : "L", t.is_lower ? "U" : "L", t.is_transposed ? "T" : "N",
               t.has_unit_diagonal ? "U" : "N", &k, &m, &one, a, &lda, b, &ldb, 1, 1, 1, 1);
}

/// The same, number by number: x_i = (b_i - sum of a_ij x_j) / a_ii.
template <class T> void substitute(const Triangle& t, const T* a, int n, T* b, int m, int k, int distance) {
  const bool is_turned = t.is_transposed == t.is_left, is_forward = t.is_lower != is_turned;
  const int others = t.is_left ? k : m;
  const std::int64_t along = t.is_left ? distance : 1, across = t.is_left ? 1 : distance;
  for (int s = 0; s < n; s++) {
    const int i = is_forward ? s : n - 1 - s;
    T* const x = b + i * along;
    for (int r = 0; r < s; r++) {
      const int j = is_forward ? r : n - 1 - r;
      const T factor = is_turned ? a[std::int64_t{j} * n + i] : a[std::int64_t{i} * n + j];
      for (int o = 0; o < others; o++) x[o * across] -= factor * b[j * along + o * across];
    }
    for (int o = 0; !t.has_unit_diagonal && o < others; o++) x[o * across] /= a[std::int64_t{i} * n + i];
  }
}

template <class T> bool are_finite(const T* x, int rows, int columns, int distance) {
  const auto is_finite = [](const T& v) {
    if constexpr (is_complex_number<T>) return std::isfinite(v.real()) && std::isfinite(v.imag());
    else return std::isfinite(v);
  };
  for (int i = 0; i < rows; i++)
    if (const T* const row = x + std::int64_t{i} * distance; !std::all_of(row, row + columns, is_finite))
      return false;
  return true;
}

/// Some of the right-hand sides of one matrix: columns of B (rows, where A stands right).
template <class T> struct Sides {
  Matrices b;
  bool is_left = true;
  int blocks() const { return ((is_left ? b.n : b.m) + side_block - 1) / side_block; }
  /// Copies block `k` and calls f(first element, rows, columns, how triangles are solved). BLAS's kernels multiply what is not finite with
  /// numbers that have nothing to do with it; where there is some, the block is solved number by number.
  template <class F>
  void solve(const LapackOf<T>& library, const T* a, const T* from, T* to, int k, const F& f) const {
    const int first = k * side_block, size = std::min(side_block, (is_left ? b.n : b.m) - first);
    const int rows = is_left ? b.m : size, columns = is_left ? size : b.n;
    const std::int64_t offset = is_left ? first : std::int64_t{first} * b.n;
    const T* const source = from + offset;
    T* const x = to + offset;
    const auto copy = [&] {
      for (int i = 0; i < rows; i++)
        std::copy_n(source + std::int64_t{i} * b.n, columns, x + std::int64_t{i} * b.n);
    };
    copy();
    f(x, rows, columns, [&](auto&&... args) { solve_triangle(library, args...); });
    const int n = is_left ? b.m : b.n;
    if (are_finite(x, rows, columns, b.n) ||
        (are_finite(a, n, n, n) && are_finite(source, rows, columns, b.n)))
      return;
    copy();
    f(x, rows, columns, [](auto&&... args) { substitute(args...); });
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
      sides.solve(library, matrix, elements_at<T>(bases, in[1], k * b.elements()),
                  elements_at<T>(bases, out, k * b.elements()), static_cast<int>(u % sides.blocks()),
                  [&](T* x, int rows, int columns, const auto& solve) {
                    solve(triangle, matrix, a.n, x, rows, columns, b.n);
                  });
    }
  };
  return {units, solving_ns<T>(a, b), run};
}

/// Rows of B as the factorisation exchanged those of A, or back.
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
      sides.solve(library, lu, elements_at<T>(bases, in[2], k * b.elements()),
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
