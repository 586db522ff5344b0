#include "cpu/products/own_gemm.h"

#include <algorithm>
#include <memory>
#include <new>

#include "base/per_thread.h"
#include "cpu/loops/loops.h"

#include <sys/mman.h>
#include <unistd.h>

namespace shardarray {

const OwnGemmTable& own_gemm() {
#if defined(__x86_64__)
  static const OwnGemmTable& best = has_v4() ? own_gemm_v4 : has_v3() ? own_gemm_v3 : own_gemm_baseline;
  return best;
#else
  return own_gemm_baseline;
#endif
}

namespace {

constexpr std::size_t page = std::size_t{1} << 21;  // huge pages: a panel covers hundreds of small ones

struct PackingSpace {
  struct Free {
    void operator()(void* p) const { ::operator delete(p, std::align_val_t(page)); }
  };
  std::unique_ptr<void, Free> memory;
  std::size_t bytes = 0;
};

}  // namespace

void* packing_space(std::size_t bytes) {
  PackingSpace& s = PerThread<PackingSpace>::get();
  if (bytes > s.bytes) {
    s.memory.reset();
    s.bytes = 0;
    const std::size_t whole = (bytes + page - 1) / page * page;
    s.memory.reset(::operator new(whole, std::align_val_t(page)));
    s.bytes = whole;
    madvise(s.memory.get(), whole, MADV_HUGEPAGE);
  }
  return s.memory.get();
}

std::int64_t panel_bytes() {
  static const std::int64_t half = [] {
    const long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);  // 0 or less: unknown
    return std::clamp<std::int64_t>(cache / 2, 128 << 10, 1 << 20);
  }();
  return half;
}

}  // namespace shardarray
