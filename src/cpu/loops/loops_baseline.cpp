#include "cpu/loops/loops.inc"

namespace shardarray {

const Loops& baseline_loops() {
  static const Loops table = [] {
    Loops t;
    fill(t);
    return t;
  }();
  return table;
}

bool has_v3() {
#if defined(__x86_64__)
  static const bool all = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                          __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  return all;
#else
  return false;
#endif
}

bool has_v4() {
#if defined(__x86_64__)
  static const bool all = has_v3() && __builtin_cpu_supports("avx512f") &&
                          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return all;
#else
  return false;
#endif
}

#ifdef SHARDARRAY_NO_V3
const Loops* v3_loops() { return nullptr; }
#else
const Loops& v3_table();  // loops_v3.cpp

const Loops* v3_loops() { return has_v3() ? &v3_table() : nullptr; }
#endif

const Loops& best_loops() {
  static const Loops& best = v3_loops() ? *v3_loops() : baseline_loops();
  return best;
}

}  // namespace shardarray
