// LAPACK, opened at the first matrix factorization and called through a table: the library named by SHARDARRAY_BLAS if it has one, else
// OpenBLAS; in the BLAS's private link namespace.
#pragma once
#include <complex>
#include <cstddef>
#include <string>
#include <type_traits>

namespace shardarray {

/// The type of the real and imaginary parts; for a real type, itself.
template <class T> struct PartOf { using type = T; };
template <class T> struct PartOf<std::complex<T>> { using type = T; };
template <class T> using part_of_t = typename PartOf<T>::type;
template <class T> constexpr bool is_complex_number = !std::is_same_v<T, part_of_t<T>>;

/// LAPACK's Fortran interface with 32-bit integers; matrices are column-major. The last arguments are the lengths of the texts, 1 each.
/// Complex functions with other names (ungqr, heevd) are stored under the real ones'; some take an additional real workspace.
template <class T> struct LapackOf {
  using Part = part_of_t<T>;
  using Text = const char*;
  using Int = const int*;
  using Length = std::size_t;
  void (*trsm)(Text side, Text uplo, Text trans, Text diag, Int m, Int n, const T* alpha, const T* a, Int lda,
               T* b, Int ldb, Length, Length, Length, Length) = nullptr;
  void (*potrf)(Text uplo, Int n, T* a, Int lda, int* info, Length) = nullptr;
  void (*getrf)(Int m, Int n, T* a, Int lda, int* pivots, int* info) = nullptr;
  void (*geqrf)(Int m, Int n, T* a, Int lda, T* tau, T* work, Int lwork, int* info) = nullptr;
  void (*orgqr)(Int m, Int n, Int k, T* a, Int lda, const T* tau, T* work, Int lwork, int* info) = nullptr;
  using RealSyevd = void(Text job, Text uplo, Int n, T* a, Int lda, Part* w, T* work, Int lwork, int* iwork,
                         Int liwork, int* info, Length, Length);
  using ComplexHeevd = void(Text job, Text uplo, Int n, T* a, Int lda, Part* w, T* work, Int lwork,
                            Part* rwork, Int lrwork, int* iwork, Int liwork, int* info, Length, Length);
  std::conditional_t<is_complex_number<T>, ComplexHeevd, RealSyevd>* syevd = nullptr;
  using RealGesdd = void(Text job, Int m, Int n, T* a, Int lda, Part* s, T* u, Int ldu, T* vt, Int ldvt,
                         T* work, Int lwork, int* iwork, int* info, Length);
  using ComplexGesdd = void(Text job, Int m, Int n, T* a, Int lda, Part* s, T* u, Int ldu, T* vt, Int ldvt,
                            T* work, Int lwork, Part* rwork, int* iwork, int* info, Length);
  std::conditional_t<is_complex_number<T>, ComplexGesdd, RealGesdd>* gesdd = nullptr;
};
struct Lapack {
  LapackOf<float> f32;
  LapackOf<double> f64;
  LapackOf<std::complex<float>> c64;
  LapackOf<std::complex<double>> c128;
  template <class T> const LapackOf<T>& of() const {
    if constexpr (std::is_same_v<T, float>) return f32;
    else if constexpr (std::is_same_v<T, double>) return f64;
    else if constexpr (std::is_same_v<T, std::complex<float>>) return c64;
    else return c128;
  }
};

/// Throws Error, naming the kernel, if there is no thread-safe LAPACK with 32-bit integers.
const Lapack& lapack(const char* kernel);

/// Fills the table; else returns why not, in a few words.
using LapackOpener = std::string (*)(Lapack& table);
/// Sets what opens the library and forgets the open one (tests). Null: the real one. Returns the previous one.
LapackOpener set_lapack_opener(LapackOpener open);

}  // namespace shardarray
