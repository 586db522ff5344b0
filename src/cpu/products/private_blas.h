// The BLAS that only we see: a copy in a link namespace of its own.
#pragma once
#include <dlfcn.h>

#include <string>

namespace shardarray {

/// A library in our namespace. Never closed.
struct PrivateLibrary {
  std::string named;         ///< what SHARDARRAY_BLAS names; empty for OpenBLAS
  void* library = nullptr;   ///< null: it could not be opened
  std::string problem = {};  ///< why not
};
/// What SHARDARRAY_BLAS names; empty for OpenBLAS.
std::string named_blas();
/// The library for matrix products: the one that SHARDARRAY_BLAS names, else OpenBLAS. Opened at the first call.
const PrivateLibrary& private_blas();
/// OpenBLAS: the same library unless another one is named. Opened at the first call.
const PrivateLibrary& private_openblas();

/// Whether the library has a function of that name.
template <class F> bool find_symbol(void* library, const char* symbol, F& f) {
  f = library == nullptr ? nullptr : reinterpret_cast<F>(dlsym(library, symbol));
  return f != nullptr;
}
/// What openblas_get_config returns; empty for other libraries.
const char* openblas_config(void* library);

/// A thread's turn in a BLAS or LAPACK: it waits while as many threads are inside as OpenBLAS has memory for (2 MAX_THREADS, 128 in
/// Debian's build): with one more, version 0.3.21 sometimes crashes.
class BlasTurn {
 public:
  BlasTurn();
  ~BlasTurn();
  BlasTurn(const BlasTurn&) = delete;
  BlasTurn& operator=(const BlasTurn&) = delete;
};

}  // namespace shardarray
