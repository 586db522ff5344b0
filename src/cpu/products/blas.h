// The BLAS, OpenBLAS or what SHARDARRAY_BLAS names: a private copy, opened when needed and called through a table. Other users of the same
// library in the process do not see it or its settings, nor it theirs.
#pragma once
#include <string>

namespace shardarray {

/// The CBLAS interface; orders and transposes are CBLAS's numbers.
struct Blas {
  static constexpr int row_major = 101, no_trans = 111, trans = 112;
  void (*sgemm)(int order, int ta, int tb, int m, int n, int k, float alpha, const float* a, int lda,
                const float* b, int ldb, float beta, float* c, int ldc) = nullptr;
  void (*dgemm)(int order, int ta, int tb, int m, int n, int k, double alpha, const double* a, int lda,
                const double* b, int ldb, double beta, double* c, int ldc) = nullptr;
  void (*sgemv)(int order, int ta, int m, int n, float alpha, const float* a, int lda, const float* x,
                int incx, float beta, float* y, int incy) = nullptr;
  void (*dgemv)(int order, int ta, int m, int n, double alpha, const double* a, int lda, const double* x,
                int incx, double beta, double* y, int incy) = nullptr;
  const char* config = "";  ///< what openblas_get_config returns; empty for other libraries
  std::string problem;      ///< why it could not be opened
};

/// Null if there is no library (a notice goes to stderr once). Throws CompileError for a build that is not thread-safe, Error if the named
/// library cannot be opened or lacks functions.
const Blas* blas();
/// Whether SHARDARRAY_BLAS, or a test, names the library. It is then used even where our own kernel would be as fast.
bool blas_is_named();

/// Fills the table; false: no library.
using BlasOpener = bool (*)(Blas& table);
/// Sets what opens the library and forgets the open one (tests). Null: the real one. Returns the previous one.
BlasOpener set_blas_opener(BlasOpener open);

}  // namespace shardarray
