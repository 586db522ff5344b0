// What every opcode of kernel.h does to one element: the only definition, used by constant folding, the interpreter's loops and printed
// kernels.
//
// Everything is force-inlined: the interpreter compiles this for two instruction sets, and if the linker chose an out-of-line copy from the
// wrong one, older machines would hit an illegal instruction. The bits are those of a build with -ffp-contract=off in the default rounding
// mode.
#pragma once
#include <math.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#ifndef SHARDARRAY_SCALAR  // kernels/device.cuh defines another one for CUDA
#define SHARDARRAY_SCALAR [[gnu::always_inline]] inline
#endif

namespace shardarray::scalar {

template <class To, class From> SHARDARRAY_SCALAR To from_bits(From x) { return __builtin_bit_cast(To, x); }

/// The unsigned type in which integers of type T wrap: at least `unsigned`, to avoid promotion to int.
template <class T> using Wrapping = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
template <class T> inline constexpr Wrapping<T> bit_width = sizeof(T) * 8;
template <class T> inline constexpr T quiet_nan = std::numeric_limits<T>::quiet_NaN();
template <class T> using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

// One operand.
template <class T> SHARDARRAY_SCALAR T neg(T a) {
  if constexpr (std::is_floating_point_v<T>) return -a;
  else return static_cast<T>(Wrapping<T>{0} - static_cast<Wrapping<T>>(a));
}
template <class T> SHARDARRAY_SCALAR T abs(T a) {
  if constexpr (std::is_same_v<T, float>) return __builtin_fabsf(a);
  else if constexpr (std::is_same_v<T, double>) return __builtin_fabs(a);
  else if constexpr (std::is_unsigned_v<T>) return a;
  else return a < 0 ? neg(a) : a;
}
SHARDARRAY_SCALAR float sqrt(float a) { return __builtin_sqrtf(a); }
SHARDARRAY_SCALAR double sqrt(double a) { return __builtin_sqrt(a); }
SHARDARRAY_SCALAR float floor(float a) { return __builtin_floorf(a); }
SHARDARRAY_SCALAR double floor(double a) { return __builtin_floor(a); }
SHARDARRAY_SCALAR float ceil(float a) { return __builtin_ceilf(a); }
SHARDARRAY_SCALAR double ceil(double a) { return __builtin_ceil(a); }
SHARDARRAY_SCALAR float round(float a) { return __builtin_nearbyintf(a); }
SHARDARRAY_SCALAR double round(double a) { return __builtin_nearbyint(a); }
SHARDARRAY_SCALAR float trunc(float a) { return __builtin_truncf(a); }
SHARDARRAY_SCALAR double trunc(double a) { return __builtin_trunc(a); }
template <class T> SHARDARRAY_SCALAR T not_(T a) {
  if constexpr (std::is_same_v<T, bool>) return !a;
  else return static_cast<T>(~a);
}

// Two operands.
template <class T> SHARDARRAY_SCALAR T add(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a + b;
  else return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
}
template <class T> SHARDARRAY_SCALAR T sub(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a - b;
  else return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
}
template <class T> SHARDARRAY_SCALAR T mul(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a * b;
  else return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
}
template <class T> SHARDARRAY_SCALAR T div(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a / b;
  else if (b == 0) return static_cast<T>(-1);
  else if (std::is_signed_v<T> && b == static_cast<T>(-1)) return neg(a);
  else return static_cast<T>(a / b);
}
template <class T> SHARDARRAY_SCALAR T rem(T a, T b) {
  if constexpr (std::is_same_v<T, float>) return __builtin_fmodf(a, b);
  else if constexpr (std::is_same_v<T, double>) return __builtin_fmod(a, b);
  else if (b == 0) return a;
  else if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
  else return static_cast<T>(a % b);
}
template <class T> SHARDARRAY_SCALAR bool unordered(T a, T b) {
#ifdef __CUDACC__
  return a != a || b != b;
#else
  return __builtin_isunordered(a, b);
#endif
}
// The two selections differ only for zeros of different sign (`or` gives -0 if there is one, `and` +0) and NaN. Each is one machine
// instruction. GPUs have one instruction for everything.
template <class T> SHARDARRAY_SCALAR T min(T a, T b) {
#ifdef __CUDA_ARCH__
  if constexpr (std::is_same_v<T, float>) {
    float least;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(least) : "f"(a), "f"(b));
    return least;
  }
#endif
  if constexpr (std::is_floating_point_v<T>) {
    const T x = a < b ? a : b, y = b < a ? b : a;
    return unordered(a, b) ? quiet_nan<T> : from_bits<T>(from_bits<Bits<T>>(x) | from_bits<Bits<T>>(y));
  } else {
    return b < a ? b : a;
  }
}
template <class T> SHARDARRAY_SCALAR T max(T a, T b) {
#ifdef __CUDA_ARCH__
  if constexpr (std::is_same_v<T, float>) {
    float most;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(a), "f"(b));
    return most;
  }
#endif
  if constexpr (std::is_floating_point_v<T>) {
    const T x = a > b ? a : b, y = b > a ? b : a;
    return unordered(a, b) ? quiet_nan<T> : from_bits<T>(from_bits<Bits<T>>(x) & from_bits<Bits<T>>(y));
  } else {
    return a < b ? b : a;
  }
}
template <class T> SHARDARRAY_SCALAR T and_(T a, T b) { return static_cast<T>(a & b); }
template <class T> SHARDARRAY_SCALAR T or_(T a, T b) { return static_cast<T>(a | b); }
template <class T> SHARDARRAY_SCALAR T xor_(T a, T b) { return static_cast<T>(a ^ b); }
// Amounts are taken as unsigned: negative ones are >= the width.
template <class T> SHARDARRAY_SCALAR T shl(T a, T b) {
  using U = std::make_unsigned_t<T>;
  const Wrapping<T> amount = static_cast<U>(b), x = static_cast<U>(a);
  return amount < bit_width<T> ? static_cast<T>(x << (amount & (bit_width<T> - 1))) : T{0};
}
template <class T> SHARDARRAY_SCALAR T shr(T a, T b) {
  const Wrapping<T> amount = static_cast<std::make_unsigned_t<T>>(b), most = bit_width<T> - 1;
  if constexpr (std::is_signed_v<T>) return static_cast<T>(a >> (amount < most ? amount : most));
  else return amount <= most ? static_cast<T>(a >> (amount & most)) : T{0};
}
template <class T> SHARDARRAY_SCALAR bool eq(T a, T b) { return a == b; }
template <class T> SHARDARRAY_SCALAR bool ne(T a, T b) { return a != b; }
template <class T> SHARDARRAY_SCALAR bool lt(T a, T b) { return a < b; }
template <class T> SHARDARRAY_SCALAR bool le(T a, T b) { return a <= b; }
template <class T> SHARDARRAY_SCALAR bool gt(T a, T b) { return a > b; }
template <class T> SHARDARRAY_SCALAR bool ge(T a, T b) { return a >= b; }

/// The rounding error of a + b (Knuth); meaningless if a + b is not finite.
template <class T> SHARDARRAY_SCALAR T rounded_off(T a, T b) {
  const T t = a + b, z = t - a;
  return (a - (t - z)) + (b - z);
}
/// A sum plus the accumulated rounding error.
template <class T> SHARDARRAY_SCALAR T with_rounded_off(T total, T lost) {
  const T s = total + lost;
  return abs(s) <= std::numeric_limits<T>::max() ? s : total;
}

/// Adds the rounding error to the sum, keeping what that cannot hold: otherwise very many errors would lose digits themselves.
template <class T> SHARDARRAY_SCALAR void carry(T& total, T& lost) {
  const T s = total + lost;
  if (!(abs(s) <= std::numeric_limits<T>::max())) return;
  lost = rounded_off(total, lost);
  total = s;
}

/// An element of a matrix product is one chain of multiply-adds up to `longest_chain`. Longer ones are split into chains of `chain_block`,
/// each from 0, added as kernel.h adds the blocks of a sum, with a carry() after each full `carried_steps`.
inline constexpr std::int64_t longest_chain = 8192, chain_block = 32, carried_steps = 4096;

// Three operands.
SHARDARRAY_SCALAR float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
SHARDARRAY_SCALAR double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
template <class T> SHARDARRAY_SCALAR T select(bool c, T a, T b) { return c ? a : b; }

template <class To, class From> SHARDARRAY_SCALAR To cast(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From{0};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    using Limits = std::numeric_limits<To>;
    constexpr From low = static_cast<From>(Limits::min());  // exact: 0 or a power of two
    constexpr From high =
        static_cast<From>(Limits::max() / 2 + 1) * 2;  // exact: the first value above the range
    const bool inside = x > low && x < high;
    const To truncated = static_cast<To>(inside ? x : From{0});
    return x >= high ? Limits::max() : x <= low ? Limits::min() : truncated;
  } else {
    return static_cast<To>(x);
  }
}

// float64 functions, named as in `Function`. The C library's are within 1 ulp (tan, erf, lgamma and the hyperbolic ones: 2; erfc: 5).
SHARDARRAY_SCALAR double log(double x) { return __builtin_log(x); }
SHARDARRAY_SCALAR double log1p(double x) { return __builtin_log1p(x); }
SHARDARRAY_SCALAR double sin(double x) { return __builtin_sin(x); }
SHARDARRAY_SCALAR double cos(double x) { return __builtin_cos(x); }
SHARDARRAY_SCALAR double tan(double x) { return __builtin_tan(x); }
SHARDARRAY_SCALAR double erf(double x) { return __builtin_erf(x); }
SHARDARRAY_SCALAR double erfc(double x) { return __builtin_erfc(x); }
SHARDARRAY_SCALAR double pow(double x, double y) { return __builtin_pow(x, y); }
SHARDARRAY_SCALAR double atan2(double y, double x) { return __builtin_atan2(y, x); }
SHARDARRAY_SCALAR double asin(double x) { return __builtin_asin(x); }
SHARDARRAY_SCALAR double acos(double x) { return __builtin_acos(x); }
SHARDARRAY_SCALAR double atan(double x) { return __builtin_atan(x); }
/// The reentrant form: C's `lgamma` writes a global variable.
SHARDARRAY_SCALAR double lgamma(double x) {
#ifdef __CUDACC__
  return ::lgamma(x);
#else
  int sign = 0;
  return ::lgamma_r(x, &sign);
#endif
}
template <int n> SHARDARRAY_SCALAR double horner(const double (&c)[n], double w) {
  double p = c[0];
  for (int i = 1; i < n; i++) p = c[i] + p * w;
  return p;
}
/// Giles, "Approximating the erfinv function" (GPU Computing Gems, 2011), double precision.
SHARDARRAY_SCALAR double erf_inv(double x) {
  constexpr double small[] = {
      -3.6444120640178196996e-21, -1.685059138182016589e-19,  1.2858480715256400167e-18,
      1.115787767802518096e-17,   -1.333171662854620906e-16,  2.0972767875968561637e-17,
      6.6376381343583238325e-15,  -4.0545662729752068639e-14, -8.1519341976054721522e-14,
      2.6335093153082322977e-12,  -1.2975133253453532498e-11, -5.4154120542946279317e-11,
      1.051212273321532285e-09,   -4.1126339803469836976e-09, -2.9070369957882005086e-08,
      4.2347877827932403518e-07,  -1.3654692000834678645e-06, -1.3882523362786468719e-05,
      0.0001867342080340571352,   -0.00074070253416626697512, -0.0060336708714301490533,
      0.24015818242558961693,     1.6536545626831027356};
  constexpr double middle[] = {
      2.2137376921775787049e-09, 9.0756561938885390979e-08, -2.7517406297064545428e-07,
      1.8239629214389227755e-08, 1.5027403968909827627e-06, -4.013867526981545969e-06,
      2.9234449089955446044e-06, 1.2475304481671778723e-05, -4.7318229009055733981e-05,
      6.8284851459573175448e-05, 2.4031110387097893999e-05, -0.0003550375203628474796,
      0.00095328937973738049703, -0.0016882755560235047313, 0.0024914420961078508066,
      -0.0037512085075692412107, 0.005370914553590063617,   1.0052589676941592334,
      3.0838856104922207635};
  constexpr double large[] = {
      -2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09,
      -3.7894654401267369937e-09, 7.6157012080783393804e-09,  -1.4960026627149240478e-08,
      2.9147953450901080826e-08,  -6.7711997758452339498e-08, 2.2900482228026654717e-07,
      -9.9298272942317002539e-07, 4.5260625972231537039e-06,  -1.9681778105531670567e-05,
      7.5995277030017761139e-05,  -0.00021503011930044477347, -0.00013871931833623122026,
      1.0103004648645343977,      4.8499064014085844221};
  if (abs(x) == 1) return x * std::numeric_limits<double>::infinity();
  const double w = -log1p(-(x * x));
  if (w < 6.25) return horner(small, w - 3.125) * x;
  const double root = sqrt(w);
  return (w < 16 ? horner(middle, root - 3.25) : horner(large, root - 5)) * x;
}

}  // namespace shardarray::scalar
