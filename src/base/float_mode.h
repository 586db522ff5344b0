// How the floating point unit of this thread treats denormals.
#pragma once
#include <cstdint>

namespace shardarray {

/// RAII: if `on`, arithmetic of this thread takes denormals as 0 and returns 0 instead of them. Otherwise leaves the thread's mode as it
/// is.
class FlushDenormals {
 public:
  explicit FlushDenormals(bool on) {
    if (!on) return;
    const std::uint64_t before = control();
    added_ = bits & ~before;
    if (added_ != 0) set_control(before | added_);
  }
  ~FlushDenormals() {
    if (added_ != 0) set_control(control() & ~added_);  // keeps other bits set meanwhile
  }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr std::uint64_t bits = 0x8040;  // MXCSR: FTZ and DAZ
  static std::uint64_t control() { return __builtin_ia32_stmxcsr(); }
  static void set_control(std::uint64_t v) { __builtin_ia32_ldmxcsr(static_cast<unsigned>(v)); }
#elif defined(__aarch64__)
  static constexpr std::uint64_t bits = 1u << 24;  // FPCR: FZ
  static std::uint64_t control() {
    std::uint64_t v = 0;
    asm volatile("mrs %0, fpcr" : "=r"(v));
    return v;
  }
  static void set_control(std::uint64_t v) { asm volatile("msr fpcr, %0" : : "r"(v) : "memory"); }
#else
  static constexpr std::uint64_t bits = 0;
  static std::uint64_t control() { return 0; }
  static void set_control(std::uint64_t) {}
#endif
  std::uint64_t added_ = 0;
};

}  // namespace shardarray
