// The LAPACK, opened at the first factorisation of a matrix and reached through a function table: the library that SHARDARRAY_BLAS
// names if it has one, else OpenBLAS; in the name space that the BLAS has to itself.
#pragma once
#include <complex>
#include <cstddef>
#include <string>
#include <type_traits>

namespace shardarray {

/// The type of the real and the imaginary part; of a real number its own.
template <class T> struct PartOf { using type = T; };
template <class T> struct PartOf<std::complex<T>> { using type = T; };
template <class T> using part_of_t = typename PartOf<T>::type;
template <class T> constexpr bool is_complex_number = !std::is_same_v<T, part_of_t<T>>;

/// LAPACK's Fortran interface with 32-bit integers: matrices are column by column. What a call needs last is the length of each
/// text, 1. The functions of complex numbers that are called otherwise (ungqr, heevd) stand under the names of the real ones; some
/// take a workspace of real numbers more.
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

/// Throws Error, in the name of the kernel that asks, where there is none that several threads may call with 32-bit integers.
const Lapack& lapack(const char* kernel);

/// Fills the table; else why not, in a few words.
using LapackOpener = std::string (*)(Lapack& table);
/// Sets what opens the library and forgets the one that is open (tests). Null: the real one. Returns the one before.
LapackOpener set_lapack_opener(LapackOpener open);

}  // namespace shardarray
