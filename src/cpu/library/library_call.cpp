#include "cpu/library/library_call.h"

#include <fmt/format.h>

#include "shardarray/error.h"

namespace shardarray {
namespace {

struct Entry {
  const char* name;
  LibraryPlan (*plan)(const LibraryCall&, const LibraryCall::Item&);
};
constexpr Entry table[] = {{"sort", plan_sort},
                           {"scatter", plan_scatter},
                           {"update", plan_update},
                           {"update_rows", plan_update_rows},
                           {"scan", plan_scan},
                           {"conv", plan_conv},
                           {"cholesky", plan_cholesky},
                           {"lu", plan_lu},
                           {"triangular_solve", plan_triangular_solve},
                           {"lu_solve", plan_lu_solve},
                           {"qr", plan_qr},
                           {"eigh", plan_eigh},
                           {"svd", plan_svd},
                           {"fft", plan_fft},
                           {"rfft", plan_rfft},
                           {"irfft", plan_irfft}};

}  // namespace

LibraryPlan plan_library_call(const LibraryCall& call, const LibraryCall::Item& item) {
  for (const Entry& e : table)
    if (call.name == e.name) return e.plan(call, item);
  std::string known;
  for (const Entry& e : table) known += fmt::format("{}{}", known.empty() ? "" : ", ", e.name);
  throw CompileError(fmt::format(
      "{}: the CPU has no library kernel of this name. It has {}. Please report this.", call.name, known));
}

void refuse_dtype(const char* kernel, DType t, const char* takes) {
  throw CompileError(fmt::format("{}: the CPU has no kernel for {}. It takes {}. Convert the operand first.",
                                 kernel, name(t), takes));
}

}  // namespace shardarray
