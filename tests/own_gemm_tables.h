// The builds of the own matrix product that run on this machine.
#pragma once
#include <vector>

#include "cpu/loops/loops.h"
#include "cpu/products/own_gemm.h"

namespace shardarray {

inline std::vector<const OwnGemmTable*> own_gemm_tables() {
  std::vector<const OwnGemmTable*> all = {&own_gemm_baseline};
#if defined(__x86_64__)
  if (has_v3()) all.push_back(&own_gemm_v3);
  if (has_v4()) all.push_back(&own_gemm_v4);
#endif
  return all;
}
inline void run_product(const OwnGemmTable& table, const OwnGemm<float>& g) { table.f32(g); }
inline void run_product(const OwnGemmTable& table, const OwnGemm<double>& g) { table.f64(g); }

}  // namespace shardarray
