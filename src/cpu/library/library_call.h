// Kernels that are not loop nests, by name.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/instruction_bits.h"
#include "runtime/program.h"

namespace shardarray {

/// One item of a LibraryCall in independent units, possibly in several consecutive stages.
class LibraryPlan {
 public:
  using Run = std::function<void(void* const* bases, std::int64_t begin, std::int64_t end)>;
  LibraryPlan(std::int64_t units, double cost_ns, Run run)
      : units_(units), cost_ns_(cost_ns), run_(std::move(run)) {}
  void run(void* const* bases, std::int64_t begin, std::int64_t end) const { run_(bases, begin, end); }
  std::int64_t units() const { return units_; }
  double cost_ns() const { return cost_ns_; }

  LibraryPlan then(LibraryPlan next) && {
    next_.push_back(std::move(next));
    return std::move(*this);
  }
  const std::vector<LibraryPlan>& next() const { return next_; }

 private:
  std::int64_t units_;
  double cost_ns_;
  Run run_;
  std::vector<LibraryPlan> next_;
};

/// Throws CompileError if the CPU has no kernel of that name, or none for the dtype.
LibraryPlan plan_library_call(const LibraryCall& call, const LibraryCall::Item& item);

// The kernels, one file each. Units: lines along the sorted dimension; blocks of a table's columns; rows of a part; blocks of neighbouring
// lines; blocks of points and features.
LibraryPlan plan_sort(const LibraryCall& call, const LibraryCall::Item& item);
LibraryPlan plan_scatter(const LibraryCall& call, const LibraryCall::Item& item);
LibraryPlan plan_update(const LibraryCall& call, const LibraryCall::Item& item);
LibraryPlan plan_update_rows(const LibraryCall& call, const LibraryCall::Item& item);
LibraryPlan plan_scan(const LibraryCall& call, const LibraryCall::Item& item);
// factorizations.cpp, orthogonal.cpp: units are matrices. They throw Error without LAPACK.
LibraryPlan plan_cholesky(const LibraryCall& call, const LibraryCall::Item& item);
LibraryPlan plan_lu(const LibraryCall& call, const LibraryCall::Item& item);
LibraryPlan plan_qr(const LibraryCall& call, const LibraryCall::Item& item);
LibraryPlan plan_eigh(const LibraryCall& call, const LibraryCall::Item& item);
LibraryPlan plan_svd(const LibraryCall& call, const LibraryCall::Item& item);
// solves.cpp: units are blocks of right-hand sides.
LibraryPlan plan_triangular_solve(const LibraryCall& call, const LibraryCall::Item& item);
LibraryPlan plan_lu_solve(const LibraryCall& call, const LibraryCall::Item& item);
// fft.cpp: units are blocks of lines along the last dimension, or blocks of one long line.
LibraryPlan plan_fft(const LibraryCall& call, const LibraryCall::Item& item);
LibraryPlan plan_rfft(const LibraryCall& call, const LibraryCall::Item& item);
LibraryPlan plan_irfft(const LibraryCall& call, const LibraryCall::Item& item);
LibraryPlan plan_conv(const LibraryCall& call, const LibraryCall::Item& item);

/// Copies x, the first operand, to the result, unless that is x; then `put`.
LibraryPlan after_copy(const LibraryCall::Item& item, DType t, LibraryPlan put);

/// Throws CompileError; `takes` names the supported dtypes.
[[noreturn]] void refuse_dtype(const char* kernel, DType t, const char* takes);
/// Calls f with a value of the C++ type of `t`: integers, float32 and float64.
template <class F> LibraryPlan with_number_type(const char* kernel, DType t, const F& f) {
  constexpr const char* takes = "integers, float32 or float64";
  if (!is_integer(t) && t != DType::float32 && t != DType::float64) refuse_dtype(kernel, t, takes);
  return scalar::with_type(t, [&](auto x) -> LibraryPlan {
    if constexpr (std::is_same_v<decltype(x), bool>) refuse_dtype(kernel, t, takes);
    else return f(x);
  });
}

}  // namespace shardarray
