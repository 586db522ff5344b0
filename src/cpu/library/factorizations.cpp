// Matrix factorizations by LAPACK, one unit per matrix.
#include <utility>

#include "cpu/library/matrices.h"

namespace shardarray {
namespace {

/// The time for `flops` times m n min(m, n) per matrix, at one core's speed.
template <class T> double factorizing_ns(const Matrices& a, double flops) {
  const double sides = static_cast<double>(a.elements()) * static_cast<double>(std::min(a.m, a.n));
  return static_cast<double>(a.count) * (1000 + arithmetic_ns<T>(sides * flops));
}

// ---------------------------------------------------------------- cholesky
// Factors the lower triangle of a in place; its rows become NaN if that fails.
template <class T> void factor_cholesky(const LapackOf<T>& library, T* a, int n) {
  int info = 0;
  library.potrf("U", &n, a, &n, &info, 1);
  for (std::int64_t i = 0; info != 0 && i < n; i++) fill_nan(a + i * n, i + 1);
}

// The row-major lower triangle is LAPACK's upper one, of the conjugate matrix U^H U, and U^T is L.
template <class T> LibraryPlan cholesky_plan(const LibraryCall::Item& item) {
  const Matrices a = matrices_of("cholesky", item.in_shapes[0], 2);
  const auto run = [=, &library = lapack("cholesky"), in = item.in[0], out = item.out[0]](
                       void* const* bases, std::int64_t begin, std::int64_t end) {
    const BlasTurn turn;
    for (std::int64_t u = begin; u < end; u++) {
      const T* const from = elements_at<T>(bases, in, u * a.elements());
      T* const to = elements_at<T>(bases, out, u * a.elements());
      const auto each_row = [&](const auto& f) {
        for (std::int64_t i = 0; i < a.n; i++) f(to + i * a.n, i);
      };
      each_row([&](T* row, std::int64_t i) {
        std::copy_n(from + i * a.n, i + 1, row);
        std::fill(row + i + 1, row + a.n, T{});
      });
      factor_cholesky(library.of<T>(), to, a.n);
      if constexpr (hides_nan<T>) {
        if (all_finite(to, a.elements())) continue;
        const auto wide = widened(from, a.elements());
        factor_cholesky(library.f64, wide.get(), a.n);
        each_row([&](T* row, std::int64_t i) { narrow(wide.get() + i * a.n, i + 1, row); });
      }
    }
  };
  return {a.elements() == 0 ? 0 : a.count, factorizing_ns<T>(a, 0.33), run};
}

// ---------------------------------------------------------------- lu
template <class T> LibraryPlan lu_plan(const LibraryCall::Item& item) {
  const Matrices a = matrices_of("lu", item.in_shapes[0], 2);
  const int k = std::min(a.m, a.n);
  const auto run = [=, &library = lapack("lu"), in = item.in[0], out = item.out](
                       void* const* bases, std::int64_t begin, std::int64_t end) {
    const BlasTurn turn;
    const auto columns = room_for<T>(a.elements());
    const int ld = leading(a.m);
    for (std::int64_t u = begin; u < end; u++) {
      auto* const pivots = elements_at<std::int32_t>(bases, out[1], u * k);
      auto* const permutation = elements_at<std::int32_t>(bases, out[2], u * a.m);
      for (int i = 0; i < a.m; i++) permutation[i] = i;
      if (k == 0) continue;
      to_columns(elements_at<T>(bases, in, u * a.elements()), a.m, a.n, columns.get());
      int info = 0;  // > 0: U is singular, but correct
      library.of<T>().getrf(&a.m, &a.n, columns.get(), &ld, pivots, &info);
      if constexpr (hides_nan<T>)
        if (!all_finite(columns.get(), a.elements())) {
          to_columns(elements_at<T>(bases, in, u * a.elements()), a.m, a.n, columns.get());
          const auto wide = widened(columns.get(), a.elements());
          library.f64.getrf(&a.m, &a.n, wide.get(), &ld, pivots, &info);
          narrow(wide.get(), a.elements(), columns.get());
        }
      to_rows(columns.get(), a.m, a.n, elements_at<T>(bases, out[0], u * a.elements()));
      for (int i = 0; i < k; i++) std::swap(permutation[i], permutation[--pivots[i]]);
    }
  };
  return {a.m == 0 ? 0 : a.count, factorizing_ns<T>(a, 0.67), run};
}

}  // namespace

LibraryPlan plan_cholesky(const LibraryCall& call, const LibraryCall::Item& item) {
  return with_lapack_type("cholesky", call.in_types[0],
                          [&](auto t) { return cholesky_plan<decltype(t)>(item); });
}
LibraryPlan plan_lu(const LibraryCall& call, const LibraryCall::Item& item) {
  return with_lapack_type("lu", call.in_types[0], [&](auto t) { return lu_plan<decltype(t)>(item); });
}

}  // namespace shardarray
