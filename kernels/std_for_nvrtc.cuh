// What kernels and the headers that they include need of the standard library and of compiler builtins, for NVRTC, which has neither. It
// replaces each of the standard headers.
#pragma once

#define __builtin_fabsf ::fabsf
#define __builtin_fabs ::fabs
#define __builtin_sqrtf ::sqrtf
#define __builtin_sqrt ::sqrt
#define __builtin_floorf ::floorf
#define __builtin_floor ::floor
#define __builtin_ceilf ::ceilf
#define __builtin_ceil ::ceil
#define __builtin_nearbyintf ::nearbyintf
#define __builtin_nearbyint ::nearbyint
#define __builtin_truncf ::truncf
#define __builtin_trunc ::trunc
#define __builtin_fmodf ::fmodf
#define __builtin_fmod ::fmod
#define __builtin_fmaf ::fmaf
#define __builtin_fma ::fma
#define __builtin_exp ::exp
#define __builtin_expm1 ::expm1
#define __builtin_log ::log
#define __builtin_log1p ::log1p
#define __builtin_sin ::sin
#define __builtin_cos ::cos
#define __builtin_tan ::tan
#define __builtin_tanh ::tanh
#define __builtin_erf ::erf
#define __builtin_erfc ::erfc
#define __builtin_pow ::pow
#define __builtin_atan2 ::atan2
#define __builtin_asin ::asin
#define __builtin_acos ::acos
#define __builtin_atan ::atan
#define __builtin_sinh ::sinh
#define __builtin_cosh ::cosh

namespace std {
template <class T> class complex;  // only the name, to tell dtypes apart

using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long;
using uintptr_t = unsigned long;
using size_t = decltype(sizeof 0);
enum class byte : unsigned char {};

template <bool choice, class A, class B> struct conditional { using type = A; };
template <class A, class B> struct conditional<false, A, B> { using type = B; };
template <bool choice, class A, class B> using conditional_t = typename conditional<choice, A, B>::type;

template <class A, class B> inline constexpr bool is_same_v = false;
template <class A> inline constexpr bool is_same_v<A, A> = true;
template <class T> inline constexpr bool is_floating_point_v = is_same_v<T, float> || is_same_v<T, double>;
template <class T> inline constexpr bool is_integral_v = !is_floating_point_v<T>;  // for element types
template <class T> inline constexpr bool is_arithmetic_v = true;
template <class T> inline constexpr bool is_signed_v = T(-1) < T(0);
template <class T> inline constexpr bool is_unsigned_v = !is_signed_v<T>;

template <class T> struct make_unsigned { using type = T; };
template <> struct make_unsigned<int8_t> { using type = uint8_t; };
template <> struct make_unsigned<int16_t> { using type = uint16_t; };
template <> struct make_unsigned<int32_t> { using type = uint32_t; };
template <> struct make_unsigned<int64_t> { using type = uint64_t; };
template <class T> using make_unsigned_t = typename make_unsigned<T>::type;
template <class A, class B> using common_type_t = decltype(true ? A{} : B{});

/// For integers.
template <class T> struct numeric_limits {
  static constexpr T min() { return is_signed_v<T> ? static_cast<T>(T(1) << (sizeof(T) * 8 - 1)) : T(0); }
  static constexpr T max() { return static_cast<T>(~min()); }
};
template <> struct numeric_limits<float> {
  static constexpr float max() { return __builtin_bit_cast(float, 0x7f7fffffu); }
  static constexpr float infinity() { return __builtin_bit_cast(float, 0x7f800000u); }
  static constexpr float quiet_NaN() { return __builtin_bit_cast(float, 0x7fc00000u); }
};
template <> struct numeric_limits<double> {
  static constexpr double max() { return __builtin_bit_cast(double, 0x7fefffffffffffffull); }
  static constexpr double infinity() { return __builtin_bit_cast(double, 0x7ff0000000000000ull); }
  static constexpr double quiet_NaN() { return __builtin_bit_cast(double, 0x7ff8000000000000ull); }
};

// Names that only hosts use.
class ostream;
class string;
template <class T> class vector {};

}  // namespace std
