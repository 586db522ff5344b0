// Matrix factorizations with orthogonal factors by LAPACK, one unit per matrix: qr, eigh, svd.
#include <utility>

#include "cpu/library/matrices.h"

namespace shardarray {
namespace {

template <class T> double orthogonal_ns(const Matrices& a, double flops) {
  const double sides = static_cast<double>(a.elements()) * static_cast<double>(std::min(a.m, a.n));
  return static_cast<double>(a.count) * (3000 + arithmetic_ns<T>(2 * sides * flops));
}
/// A row-major identity matrix.
template <class T> void fill_identity(T* x, std::int64_t n) {
  std::fill_n(x, n * n, T{});
  for (std::int64_t i = 0; i < n; i++) x[i * n + i] = 1;
}

// ---------------------------------------------------------------- qr
/// Q is m x q.n, R is q.n x n.
template <class T> struct QrCall {
  const char* kernel;
  LapackOf<T> library;
  Matrices a, q;

  int k() const { return std::min(a.m, a.n); }
  int work_size() const {
    const int ld = leading(a.m), ks = k(), asks = -1;
    int info = 0;
    T first = 0, second = 0;
    library.geqrf(&a.m, &a.n, nullptr, &ld, nullptr, &first, &asks, &info);
    library.orgqr(&a.m, &q.n, &ks, nullptr, &ld, nullptr, &second, &asks, &info);
    return workspace_size(kernel, std::max(std::real(first), std::real(second)));
  }
  /// `columns`: A, then Q, column-major; R is row-major.
  void run(T* columns, T* tau, T* work, int size, T* r) const {
    const int ld = leading(a.m), ks = k();
    int failed = 0;
    if (ks > 0) library.geqrf(&a.m, &a.n, columns, &ld, tau, work, &size, &failed);
    for (int i = 0; i < q.n; i++)
      for (int j = 0; j < a.n; j++)
        r[std::int64_t{i} * a.n + j] = i <= j ? columns[std::int64_t{j} * a.m + i] : T{};
    library.orgqr(&a.m, &q.n, &ks, columns, &ld, tau, work, &size, &failed);
  }
};

template <class T> LibraryPlan qr_plan(const LibraryCall::Item& item) {
  constexpr const char* kernel = "qr";
  const Matrices a = matrices_of(kernel, item.in_shapes[0], 2),
                 q = matrices_of(kernel, item.out_shapes[0], 2);
  const QrCall<T> call{kernel, lapack(kernel).of<T>(), a, q};
  const int size = call.work_size();
  const auto run = [=, &library = lapack(kernel), in = item.in[0], out = item.out](
                       void* const* bases, std::int64_t begin, std::int64_t end) {
    const BlasTurn turn;
    const std::int64_t most = std::int64_t{a.m} * std::max(a.n, q.n), r_size = std::int64_t{q.n} * a.n;
    const auto columns = room_for<T>(most), tau = room_for<T>(call.k()), work = room_for<T>(size);
    for (std::int64_t u = begin; u < end; u++) {
      to_columns(elements_at<T>(bases, in, u * a.elements()), a.m, a.n, columns.get());
      T* const r = elements_at<T>(bases, out[1], u * r_size);
      call.run(columns.get(), tau.get(), work.get(), size, r);
      if constexpr (hides_nan<T>)
        if (!all_finite(columns.get(), q.elements()) || !all_finite(r, r_size)) {
          to_columns(elements_at<T>(bases, in, u * a.elements()), a.m, a.n, columns.get());
          const QrCall<double> again{kernel, library.f64, a, q};
          const int more = again.work_size();
          const auto wide = widened(columns.get(), most), tau_of = room_for<double>(again.k()),
                     room = room_for<double>(more), triangle = room_for<double>(r_size);
          again.run(wide.get(), tau_of.get(), room.get(), more, triangle.get());
          narrow(wide.get(), q.elements(), columns.get());
          narrow(triangle.get(), r_size, r);
        }
      to_rows(columns.get(), a.m, q.n, elements_at<T>(bases, out[0], u * q.elements()));
    }
  };
  return {a.m == 0 || (a.n == 0 && q.n == 0) ? 0 : a.count, orthogonal_ns<T>(a, 4), run};
}

// ---------------------------------------------------------------- eigh
/// A workspace and its size.
template <class T> struct WorkRoom {
  T* data;
  const int* size;
};
template <class T>
void call_syevd(const LapackOf<T>& library, const char* job, const char* uplo, const int& n, T* a,
                part_of_t<T>* w, WorkRoom<T> work, [[maybe_unused]] WorkRoom<part_of_t<T>> reals,
                WorkRoom<int> integers, int& info) {
  if constexpr (is_complex_number<T>)
    library.syevd(job, uplo, &n, a, &n, w, work.data, work.size, reals.data, reals.size, integers.data,
                  integers.size, &info, 1, 1);
  else
    library.syevd(job, uplo, &n, a, &n, w, work.data, work.size, integers.data, integers.size, &info, 1, 1);
}

// params: with eigenvectors; reads the lower triangle.
template <class T> LibraryPlan eigh_plan(const LibraryCall::Item& item) {
  constexpr const char* kernel = "eigh";
  const Matrices a = matrices_of(kernel, item.in_shapes[0], 2);
  const bool has_vectors = item.params[0] != 0, is_lower = item.params[1] != 0;
  const char *const job = has_vectors ? "V" : "N", *const uplo = is_lower ? "L" : "U";
  const LapackOf<T> library = lapack(kernel).of<T>();
  using Part = part_of_t<T>;
  const std::int64_t n = a.n;  // dsyevd, zheevd: LWORK, LRWORK
  check_workspace(kernel, !has_vectors           ? 2 * n
                          : is_complex_number<T> ? 1 + 5 * n + 2 * n * n
                                                 : 1 + 6 * n + 2 * n * n);
  int asks = -1, info = 0, integers = 0;
  T asked = 0;
  Part asked_reals = 0;
  if (a.n > 0)
    call_syevd<T>(library, job, uplo, a.n, nullptr, nullptr, {&asked, &asks}, {&asked_reals, &asks},
                  {&integers, &asks}, info);
  const int size = workspace_size(kernel, asked), reals = workspace_size(kernel, asked_reals);
  const auto run = [=, in = item.in[0], out = item.out](void* const* bases, std::int64_t begin,
                                                        std::int64_t end) {
    const BlasTurn turn;
    const auto columns = room_for<T>(a.elements()), work = room_for<T>(size);
    const auto real_work = room_for<Part>(is_complex_number<T> ? reals : 0);
    const auto numbers = room_for<int>(integers);
    for (std::int64_t u = begin; u < end; u++) {
      Part* const w = elements_at<Part>(bases, out[0], u * a.n);
      to_columns(elements_at<T>(bases, in, u * a.elements()), a.m, a.n, columns.get());
      bool is_good = true;  // non-finite input may never converge
      for (int j = 0; j < a.n && is_good; j++)
        is_good = all_finite(columns.get() + std::int64_t{j} * a.n + (is_lower ? j : 0),
                             is_lower ? a.n - j : j + 1);
      if (is_good) {
        int failed = 0;
        call_syevd<T>(library, job, uplo, a.n, columns.get(), w, {work.get(), &size},
                      {real_work.get(), &reals}, {numbers.get(), &integers}, failed);
        is_good = failed == 0;
      }
      if (!is_good) fill_nan(w, a.n);
      if (!has_vectors) continue;
      T* const v = elements_at<T>(bases, out[1], u * a.elements());
      if (is_good) to_rows(columns.get(), a.n, a.n, v);
      else fill_nan(v, a.elements());
    }
  };
  return {a.n == 0 ? 0 : a.count, orthogonal_ns<T>(a, has_vectors ? 9 : 1.33), run};
}

// ---------------------------------------------------------------- svd
template <class T>
void call_gesdd(const LapackOf<T>& library, const char* job, const Matrices& a, T* columns, part_of_t<T>* s,
                T* u, T* vt, const int& ldv, WorkRoom<T> work, [[maybe_unused]] part_of_t<T>* reals,
                int* integers, int& info) {
  const int ld = leading(a.m);
  if constexpr (is_complex_number<T>)
    library.gesdd(job, &a.m, &a.n, columns, &ld, s, u, &ld, vt, &ldv, work.data, work.size, reals, integers,
                  &info, 1);
  else
    library.gesdd(job, &a.m, &a.n, columns, &ld, s, u, &ld, vt, &ldv, work.data, work.size, integers, &info,
                  1);
}
/// The real workspace for complex matrices, which gesdd's query does not return: the maximum over its versions.
std::int64_t gesdd_reals(const Matrices& a, bool has_vectors) {
  const std::int64_t less = std::min(a.m, a.n), more = std::max(a.m, a.n);
  return has_vectors ? std::max(5 * less * less + 5 * less, 2 * more * less + 2 * less * less + less)
                     : 7 * less;
}

// out: the singular values and, if wanted, U [m, u.n] and V^T [v.m, n].
template <class T> LibraryPlan svd_plan(const LibraryCall::Item& item) {
  constexpr const char* kernel = "svd";
  const Matrices a = matrices_of(kernel, item.in_shapes[0], 2);
  const bool has_vectors = item.out.size() > 1;
  const int k = std::min(a.m, a.n);
  const Matrices u = has_vectors ? matrices_of(kernel, item.out_shapes[1], 2) : Matrices{a.count, 0, 0},
                 v = has_vectors ? matrices_of(kernel, item.out_shapes[2], 2) : Matrices{a.count, 0, 0};
  const char* const job = !has_vectors ? "N" : u.n == a.m && v.m == a.n ? "A" : "S";
  const int ldv = leading(v.m);
  const LapackOf<T> library = lapack(kernel).of<T>();
  const std::int64_t least = k, most = std::max(a.m, a.n);  // dgesdd, zgesdd: LWORK
  check_workspace(kernel, !has_vectors           ? 10 * least + most
                          : is_complex_number<T> ? 2 * least * least + 3 * least + most
                                                 : 4 * least * least + 7 * least + most);
  int asks = -1, info = 0;
  using Part = part_of_t<T>;
  T asked = 0;
  if (k > 0)
    call_gesdd<T>(library, job, a, nullptr, nullptr, nullptr, nullptr, ldv, {&asked, &asks}, nullptr, nullptr,
                  info);
  const int size = workspace_size(kernel, asked);
  const auto run = [=, in = item.in[0], out = item.out](void* const* bases, std::int64_t begin,
                                                        std::int64_t end) {
    const BlasTurn turn;
    const auto columns = room_for<T>(a.elements()), left = room_for<T>(u.elements()),
               right = room_for<T>(v.elements()), work = room_for<T>(size);
    const auto reals = room_for<Part>(is_complex_number<T> ? gesdd_reals(a, has_vectors) : 0);
    const auto numbers = room_for<int>(8 * std::int64_t{k});
    for (std::int64_t i = begin; i < end; i++) {
      Part* const s = elements_at<Part>(bases, out[0], i * k);
      const T* const from = elements_at<T>(bases, in, i * a.elements());
      bool is_good = all_finite(from, a.elements());  // non-finite input may never converge
      if (is_good && k > 0) {
        int failed = 0;
        to_columns(from, a.m, a.n, columns.get());
        call_gesdd<T>(library, job, a, columns.get(), s, left.get(), right.get(), ldv, {work.get(), &size},
                      reals.get(), numbers.get(), failed);
        is_good = failed == 0;
      }
      if (!is_good) fill_nan(s, k);
      if (!has_vectors) continue;
      T *const to_u = elements_at<T>(bases, out[1], i * u.elements()), *const to_v = elements_at<T>(
                                                                           bases, out[2], i * v.elements());
      if (!is_good) {
        fill_nan(to_u, u.elements());
        fill_nan(to_v, v.elements());
      } else if (k > 0) {
        to_rows(left.get(), u.m, u.n, to_u);
        to_rows(right.get(), v.m, v.n, to_v);
      } else {  // of empty matrices: identities
        if (u.m == u.n) fill_identity(to_u, u.n);
        if (v.m == v.n) fill_identity(to_v, v.n);
      }
    }
  };
  return {a.count, orthogonal_ns<T>(a, has_vectors ? 12 : 3), run};
}

}  // namespace

LibraryPlan plan_qr(const LibraryCall& call, const LibraryCall::Item& item) {
  return with_lapack_type("qr", call.in_types[0], [&](auto t) { return qr_plan<decltype(t)>(item); });
}
LibraryPlan plan_eigh(const LibraryCall& call, const LibraryCall::Item& item) {
  return with_lapack_type("eigh", call.in_types[0], [&](auto t) { return eigh_plan<decltype(t)>(item); });
}
LibraryPlan plan_svd(const LibraryCall& call, const LibraryCall::Item& item) {
  return with_lapack_type("svd", call.in_types[0], [&](auto t) { return svd_plan<decltype(t)>(item); });
}

}  // namespace shardarray
