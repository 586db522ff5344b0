// The LAPACK, opened at the first factorisation of a matrix and reached through a function table: the library that SHARDARRAY_BLAS
// names if it has one, else OpenBLAS; in the name space that the BLAS has to itself.
#pragma once
#include <cstddef>
#include <string>
#include <type_traits>

namespace shardarray {

/// LAPACK's Fortran interface with 32-bit integers: matrices are column by column. What a call needs last is the length of each
/// text, 1.
template <class T> struct LapackOf {
  using Text = const char*;
  using Int = const int*;
  using Length = std::size_t;
  void (*trsm)(Text side, Text uplo, Text trans, Text diag, Int m, Int n, const T* alpha, const T* a, Int lda,
               T* b, Int ldb, Length, Length, Length, Length) = nullptr;
  void (*potrf)(Text uplo, Int n, T* a, Int lda, int* info, Length) = nullptr;
  void (*getrf)(Int m, Int n, T* a, Int lda, int* pivots, int* info) = nullptr;
  void (*geqrf)(Int m, Int n, T* a, Int lda, T* tau, T* work, Int lwork, int* info) = nullptr;
  void (*orgqr)(Int m, Int n, Int k, T* a, Int lda, const T* tau, T* work, Int lwork, int* info) = nullptr;
  void (*syevd)(Text job, Text uplo, Int n, T* a, Int lda, T* w, T* work, Int lwork, int* iwork, Int liwork,
                int* info, Length, Length) = nullptr;
  void (*gesdd)(Text job, Int m, Int n, T* a, Int lda, T* s, T* u, Int ldu, T* vt, Int ldvt, T* work,
                Int lwork, int* iwork, int* info, Length) = nullptr;
};
struct Lapack {
  LapackOf<float> f32;
  LapackOf<double> f64;
  template <class T> const LapackOf<T>& of() const {
    if constexpr (std::is_same_v<T, float>) return f32;
    else return f64;
  }
};

/// Throws Error, in the name of the kernel that asks, where there is none that several threads may call with 32-bit integers.
const Lapack& lapack(const char* kernel);

/// Fills the table; else why not, in a few words.
using LapackOpener = std::string (*)(Lapack& table);
/// Sets what opens the library and forgets the one that is open (tests). Null: the real one. Returns the one before.
LapackOpener set_lapack_opener(LapackOpener open);

}  // namespace shardarray
