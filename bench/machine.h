// The machine's limits, measured with the cases of a bench: multiply-adds in registers, the same product by the BLAS, copies. Each runs
// on all workers of the library's pool.
#pragma once
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cpu/products/blas.h"
#include "cpu/products/blas_core.h"
#include "runtime/pool.h"

namespace bench {

/// Calls part(0) ... part(parts - 1) on all workers.
template <class F> void on_all_workers(int parts, const F& part) {
  struct Job {
    const F* part;
    int parts;
    std::atomic<int> next{0};
  } job{&part, parts};
  shardarray::ThreadPool::instance().run(
      [](void* object) {
        Job& j = *static_cast<Job*>(object);
        for (int k = j.next++; k < j.parts; k = j.next++) (*j.part)(k);
      },
      &job);
}

// Twelve chains of multiply-adds, in assembly because compilers spill such loops, on four vectors of random numbers in turn: zeros would
// run at a higher clock than any product.
#if defined(__x86_64__)
#define BENCH_FMA(op, r, c, a, b) op " %%" r #a ", %%" r #b ", %%" r #c "\n\t"
#define BENCH_ZERO(c) "vxorps %%xmm" #c ", %%xmm" #c ", %%xmm" #c "\n\t"
#define BENCH_FMA_LOOP(name, op, r)                                                                        \
  inline void name(long n, const void* numbers) {                                                          \
    asm volatile(BENCH_ZERO(0) BENCH_ZERO(1) BENCH_ZERO(2) BENCH_ZERO(3) BENCH_ZERO(4) BENCH_ZERO(5)       \
                     BENCH_ZERO(6) BENCH_ZERO(7) BENCH_ZERO(8) BENCH_ZERO(9) BENCH_ZERO(10) BENCH_ZERO(    \
                         11) "vmovups (%1), %%" r "12\n\tvmovups 64(%1), %%" r                             \
                             "13\n\t"                                                                      \
                             "vmovups 128(%1), %%" r "14\n\tvmovups 192(%1), %%" r                         \
                             "15\n\t"                                                                      \
                             "1:\n\t" BENCH_FMA(op, r, 0, 12, 13) BENCH_FMA(op, r, 1, 14, 15) BENCH_FMA(   \
                                 op, r, 2, 12, 14) BENCH_FMA(op, r, 3, 13, 15) BENCH_FMA(op, r, 4, 12, 15) \
                                 BENCH_FMA(op, r, 5, 13, 14) BENCH_FMA(op, r, 6, 12, 13)                   \
                                     BENCH_FMA(op, r, 7, 14, 15) BENCH_FMA(op, r, 8, 12, 14)               \
                                         BENCH_FMA(op, r, 9, 13, 15) BENCH_FMA(op, r, 10, 12, 15)          \
                                             BENCH_FMA(op, r, 11, 13, 14) "dec %0\n\tjnz 1b\n\tvzeroupper" \
                 : "+r"(n)                                                                                 \
                 : "r"(numbers)                                                                            \
                 : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", \
                   "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");                          \
  }
BENCH_FMA_LOOP(fma_ymm_f32, "vfmadd231ps", "ymm")
BENCH_FMA_LOOP(fma_ymm_f64, "vfmadd231pd", "ymm")
BENCH_FMA_LOOP(fma_zmm_f32, "vfmadd231ps", "zmm")
BENCH_FMA_LOOP(fma_zmm_f64, "vfmadd231pd", "zmm")
#undef BENCH_FMA_LOOP
#undef BENCH_ZERO
#undef BENCH_FMA
#endif

struct FmaLoop {
  std::string name;
  void (*loop)(long n, const void* numbers) = nullptr;
  double flops = 0;                  ///< per turn
  std::vector<double> numbers = {};  ///< 256 bytes: the loop's operands
  void run(long turns) const { loop(turns, numbers.data()); }
};
/// The loops that this CPU can run; none on other kinds of CPU.
inline std::vector<FmaLoop> fma_loops([[maybe_unused]] int itemsize) {
  std::vector<FmaLoop> loops;
#if defined(__x86_64__)
  const bool f32 = itemsize == 4;
  std::mt19937 bits(7);
  std::vector<double> numbers;
  for (int k = 0; k < 32; k++) {
    const auto number = [&] { return std::uniform_real_distribution<double>(-1, 1)(bits); };
    const float halves[2] = {static_cast<float>(number()), static_cast<float>(number())};
    numbers.push_back(f32 ? std::bit_cast<double>(halves) : number());
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    loops.push_back({"256 bit", f32 ? fma_ymm_f32 : fma_ymm_f64, 12.0 * 2 * 32 / itemsize, numbers});
  if (__builtin_cpu_supports("avx512f"))
    loops.push_back({"512 bit", f32 ? fma_zmm_f32 : fma_zmm_f64, 12.0 * 2 * 64 / itemsize, numbers});
#endif
  return loops;
}

/// C[m,n] = A[m,k] B[k,n] by the BLAS, rows split evenly over the workers.
template <class T> class BlasProduct {
 public:
  BlasProduct(int m, int k, int n)
      : m_(m), k_(k), n_(n), a_(size(m, k), 1), b_(size(k, n), 1), c_(size(m, n)) {}
  void operator()(const shardarray::Blas& blas) {
    const int parts = shardarray::ThreadPool::instance().worker_count(), rows = (m_ + parts - 1) / parts;
    on_all_workers((m_ + rows - 1) / rows, [&](int part) {
      const int begin = part * rows, count = std::min(rows, m_ - begin);
      const T* a = a_.data() + size(begin, k_);
      T* c = c_.data() + size(begin, n_);
      using B = shardarray::Blas;
      if constexpr (sizeof(T) == 4)
        blas.sgemm(B::row_major, B::no_trans, B::no_trans, count, n_, k_, 1, a, k_, b_.data(), n_, 0, c, n_);
      else
        blas.dgemm(B::row_major, B::no_trans, B::no_trans, count, n_, k_, 1, a, k_, b_.data(), n_, 0, c, n_);
    });
  }

 private:
  static std::size_t size(int x, int y) { return static_cast<std::size_t>(x) * static_cast<std::size_t>(y); }
  int m_, k_, n_;
  std::vector<T> a_, b_, c_;
};

/// Copies one matrix to each of `copies` places: the cost of an all-gather by hand.
class Copies {
 public:
  Copies(std::int64_t bytes, int copies)
      : bytes_(static_cast<std::size_t>(std::min(bytes, kMost / copies))),
        from_(bytes_, 1),
        to_(bytes_ * static_cast<std::size_t>(copies)) {}
  void operator()() {
    const std::size_t parts_each = (bytes_ + kPart - 1) / kPart;
    on_all_workers(static_cast<int>(to_.size() / bytes_ * parts_each), [&](int part) {
      const std::size_t copy = static_cast<std::size_t>(part) / parts_each,
                        at = static_cast<std::size_t>(part) % parts_each * kPart;
      std::memcpy(to_.data() + copy * bytes_ + at, from_.data() + at, std::min(kPart, bytes_ - at));
    });
  }
  double bytes() const { return static_cast<double>(to_.size()); }

 private:
  static constexpr std::int64_t kMost = std::int64_t{1} << 28;
  static constexpr std::size_t kPart = 1 << 17;
  std::size_t bytes_;
  std::vector<char> from_, to_;
};

/// Runnable threads during the last minute; negative: unknown.
inline double load_average() {
  double load = -1;
  return getloadavg(&load, 1) == 1 ? load : -1;
}

}  // namespace bench
