// The BLAS as only we see it: a copy in a name space of its own.
#pragma once
#include <dlfcn.h>

#include <string>

namespace shardarray {

/// A library in our name space. Never closed.
struct PrivateLibrary {
  std::string named;         ///< what SHARDARRAY_BLAS names; empty for OpenBLAS
  void* library = nullptr;   ///< null: it could not be opened
  std::string problem = {};  ///< why
};
/// What SHARDARRAY_BLAS names; empty for OpenBLAS.
std::string named_blas();
/// What multiplies matrices: the library that SHARDARRAY_BLAS names, else OpenBLAS. Opened at the first call.
const PrivateLibrary& private_blas();
/// OpenBLAS: the same library where no other one is named. Opened at the first call.
const PrivateLibrary& private_openblas();

/// Whether the library has a function of that name.
template <class F> bool find_symbol(void* library, const char* symbol, F& f) {
  f = library == nullptr ? nullptr : reinterpret_cast<F>(dlsym(library, symbol));
  return f != nullptr;
}
/// What openblas_get_config says; empty for other libraries.
const char* openblas_config(void* library);

/// A thread's turn in a BLAS or LAPACK: it waits while as many as OpenBLAS has memory for are there (2 MAX_THREADS, 128 of Debian's):
/// one more makes version 0.3.21 crash now and then.
class BlasTurn {
 public:
  BlasTurn();
  ~BlasTurn();
  BlasTurn(const BlasTurn&) = delete;
  BlasTurn& operator=(const BlasTurn&) = delete;
};

}  // namespace shardarray
