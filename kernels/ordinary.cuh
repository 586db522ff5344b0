// Quotients and roots of several float32 at once. A single division or root tests whether its operands are ordinary and branches to a slow
// path otherwise, which keeps the others waiting. Here one branch tests all of them.
//
// The ordinary path computes what nvcc's does, and so rounds as IEEE requires.
#pragma once
#include "kernels/device.cuh"
// See device.cuh for how scalar.h is compiled.
#include "runtime/scalar.h"

namespace shardarray::device {

template <int n> struct Floats { float of[n]; };

/// a / b, with r = 1 / b to within an ulp.
SHARDARRAY_DEVICE inline float ratio_by(float a, float b, float r) {
  r = scalar::fma(r, scalar::fma(-b, r, 1.f), r);
  const float q = scalar::fma(a, r, 0.f);
  return scalar::fma(r, scalar::fma(-b, q, a), q);
}
/// The square root of x, with r = 1 / root to within two ulp.
SHARDARRAY_DEVICE inline float root_by(float x, float r) {
  const float y = x * r;
  return scalar::fma(scalar::fma(-y, y, x), r * 0.5f, y);
}

#ifdef __CUDA_ARCH__
/// The largest bits - less, as unsigned numbers.
template <int n> SHARDARRAY_DEVICE inline std::uint32_t most_bits(const Floats<n>& x, std::uint32_t less) {
  std::uint32_t most = 0;
  for (int k = 0; k < n; k++) most = max(most, scalar::from_bits<std::uint32_t>(x.of[k]) - less);
  return most;
}
SHARDARRAY_DEVICE inline float near_reciprocal(float b) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(b));
  return r;
}
SHARDARRAY_DEVICE inline float near_reciprocal_root(float x) {
  float r;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
#endif

/// a / b with b = y + c and a = y or a number, for c a power of two and numbers near 1. Ordinary is y in 0 .. 2^60: if b is not c, neither
/// y nor the quotient is tiny; if it is, its reciprocal is exact, and so is the final rounding.
template <int n>
SHARDARRAY_DEVICE inline Floats<n> ratios(const Floats<n>& a, const Floats<n>& b,
                                          [[maybe_unused]] const Floats<n>& y) {
  Floats<n> q;
#ifdef __CUDA_ARCH__
  if (most_bits(y, 0) < 0x5d800000) {
    for (int k = 0; k < n; k++) q.of[k] = ratio_by(a.of[k], b.of[k], near_reciprocal(b.of[k]));
    return q;
  }
#endif
  for (int k = 0; k < n; k++) q.of[k] = a.of[k] / b.of[k];
  return q;
}
/// Square roots. Ordinary is 2^-101 up to the largest finite number.
template <int n> SHARDARRAY_DEVICE inline Floats<n> roots(const Floats<n>& x) {
  Floats<n> y;
#ifdef __CUDA_ARCH__
  if (most_bits(x, 0x0d000000) < 0x72800000) {
    for (int k = 0; k < n; k++) y.of[k] = root_by(x.of[k], near_reciprocal_root(x.of[k]));
    return y;
  }
#endif
  for (int k = 0; k < n; k++) y.of[k] = scalar::sqrt(x.of[k]);
  return y;
}

}  // namespace shardarray::device
