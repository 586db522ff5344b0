// Element types and how they promote.
#pragma once
#include <complex>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <type_traits>

#include "shardarray/export.h"

namespace shardarray {

/// The type of an array's elements. float16 and bfloat16 are computed in float32: every result is rounded to 16 bits, sums and
/// products of matrices once, at their end. complex64 and complex128 are pairs of float32 and float64, the real part in front;
/// they are computed by real arithmetic on their parts. Constants of the same names stand in the namespace: `shardarray::float32`.
enum class DType : std::uint8_t {
  bool_,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float16,
  bfloat16,
  float32,
  float64,
  complex64,
  complex128
};
inline constexpr DType bool_ = DType::bool_, int8 = DType::int8, int16 = DType::int16, int32 = DType::int32,
                       int64 = DType::int64, uint8 = DType::uint8, uint16 = DType::uint16,
                       uint32 = DType::uint32, uint64 = DType::uint64, float16 = DType::float16,
                       bfloat16 = DType::bfloat16, float32 = DType::float32, float64 = DType::float64,
                       complex64 = DType::complex64, complex128 = DType::complex128;

/// Bytes of one element: 1, 2, 4, 8 or 16.
[[nodiscard]] SHARDARRAY_API std::size_t itemsize(DType t);
/// numpy's name: `float32`.
[[nodiscard]] SHARDARRAY_API const char* name(DType t);
/// The short name used in types: `f32`, `bf16`, `i32`, `u32`, `bool`.
[[nodiscard]] SHARDARRAY_API const char* short_name(DType t);
/// Kinds of dtypes; bool_ is of none of them. Floating: float16, bfloat16, float32, float64. Inexact: floating or complex,
/// what can be differentiated.
[[nodiscard]] constexpr bool is_floating(DType t) { return t >= DType::float16 && t <= DType::float64; }
[[nodiscard]] constexpr bool is_complex(DType t) { return t >= DType::complex64; }
[[nodiscard]] constexpr bool is_inexact(DType t) { return t >= DType::float16; }
[[nodiscard]] constexpr bool is_integer(DType t) { return t >= DType::int8 && t <= DType::uint64; }
[[nodiscard]] constexpr bool is_signed_integer(DType t) { return t >= DType::int8 && t <= DType::int64; }
[[nodiscard]] constexpr bool is_unsigned_integer(DType t) { return t >= DType::uint8 && t <= DType::uint64; }

/// A dtype with JAX's weakness: a weak type (a literal's) takes the other operand's dtype within its kind, or a higher kind's
/// default: `int8 + 1` is int8, `int8 + 1.0` a weak float32.
struct WeakType {
  DType dtype = DType::float32;
  bool weak = false;  ///< says nothing of bool
  [[nodiscard]] friend bool operator==(const WeakType&, const WeakType&) = default;
};
/// The dtype of `a op b`, a least upper bound in JAX's promotion lattice: bool takes any other dtype, an integer with a float
/// the float's, float16 with bfloat16 is float32, an integer with another one the shortest that holds both. Where every
/// operand has at most 32 bits the result has too (int32 with uint32: int32); with any 64-bit operand JAX's x64 rules hold
/// (int64 with uint64: a weak float64). The result is weak where both are, and where an
/// integer meets a weak float. Throws nothing.
/// Source: docs.jax.dev/en/latest/jep/9407-type-promotion.html.
[[nodiscard]] SHARDARRAY_API DType promote_types(DType a, DType b);
[[nodiscard]] SHARDARRAY_API WeakType promote_types(WeakType a, WeakType b);

/// std::complex<float> and std::complex<double>.
template <class T>
concept ComplexElement = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;
/// A C++ element type that has a dtype: bool, the integers, float, double, and complex numbers of these two.
template <class T>
concept Element = (std::is_arithmetic_v<T> && sizeof(T) <= 8) || ComplexElement<T>;
/// The dtype that holds C++ type T, by its size and sign: `float` -> float32, `long` -> int64, `char` as its sign is,
/// `std::complex<float>` -> complex64.
template <Element T> [[nodiscard]] constexpr DType dtype_of() {
  if constexpr (ComplexElement<T>) return sizeof(T) == 8 ? DType::complex64 : DType::complex128;
  else if constexpr (std::is_same_v<T, bool>) return DType::bool_;
  else if constexpr (std::is_floating_point_v<T>) return sizeof(T) == 4 ? DType::float32 : DType::float64;
  else if constexpr (std::is_signed_v<T>)
    return sizeof(T) == 1   ? DType::int8
           : sizeof(T) == 2 ? DType::int16
           : sizeof(T) == 4 ? DType::int32
                            : DType::int64;
  else
    return sizeof(T) == 1   ? DType::uint8
           : sizeof(T) == 2 ? DType::uint16
           : sizeof(T) == 4 ? DType::uint32
                            : DType::uint64;
}

/// Streams as name().
SHARDARRAY_API std::ostream& operator<<(std::ostream& os, DType t);

}  // namespace shardarray
