// Element types and their promotion rules.
#pragma once
#include <complex>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <type_traits>

#include "shardarray/export.h"

namespace shardarray {

/// The type of an array's elements. float16 and bfloat16 are computed in float32: every result is rounded to 16 bits, sums and matrix
/// products once, at the end. complex64 and complex128 are pairs of float32 and float64, real part first, computed by real arithmetic on
/// their parts. The namespace has constants of the same names: `shardarray::float32`.
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

/// The size of one element in bytes: 1, 2, 4, 8 or 16.
[[nodiscard]] SHARDARRAY_API std::size_t itemsize(DType t);
/// NumPy's name: `float32`.
[[nodiscard]] SHARDARRAY_API const char* name(DType t);
/// The short name used in types: `f32`, `bf16`, `i32`, `u32`, `bool`.
[[nodiscard]] SHARDARRAY_API const char* short_name(DType t);
/// Kinds of dtypes; bool_ belongs to none. Floating: float16, bfloat16, float32, float64. Inexact: floating or complex, that is,
/// differentiable.
[[nodiscard]] constexpr bool is_floating(DType t) { return t >= DType::float16 && t <= DType::float64; }
[[nodiscard]] constexpr bool is_complex(DType t) { return t >= DType::complex64; }
[[nodiscard]] constexpr bool is_inexact(DType t) { return t >= DType::float16; }
[[nodiscard]] constexpr bool is_integer(DType t) { return t >= DType::int8 && t <= DType::uint64; }
[[nodiscard]] constexpr bool is_signed_integer(DType t) { return t >= DType::int8 && t <= DType::int64; }
[[nodiscard]] constexpr bool is_unsigned_integer(DType t) { return t >= DType::uint8 && t <= DType::uint64; }

/// A dtype with JAX's weak flag: a weak type (that of a literal) adopts the other operand's dtype within its kind, or the default of a
/// higher kind: `int8 + 1` is int8, `int8 + 1.0` a weak float32.
struct WeakType {
  DType dtype = DType::float32;
  bool weak = false;  ///< ignored for bool
  [[nodiscard]] friend bool operator==(const WeakType&, const WeakType&) = default;
};
/// The dtype of `a op b`: the least upper bound in JAX's promotion lattice. bool adopts any other dtype, an integer with a float gives
/// the float's, float16 with bfloat16 float32, two integers the shortest type that holds both. If every operand has at most 32 bits, so
/// has the result (int32 with uint32: int32); with any 64-bit operand JAX's x64 rules apply (int64 with uint64: a weak float64). The
/// result is weak if both operands are, or if an integer meets a weak float. Never throws. Source:
/// docs.jax.dev/en/latest/jep/9407-type-promotion.html.
[[nodiscard]] SHARDARRAY_API DType promote_types(DType a, DType b);
[[nodiscard]] SHARDARRAY_API WeakType promote_types(WeakType a, WeakType b);

/// std::complex<float> and std::complex<double>.
template <class T>
concept ComplexElement = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;
/// A C++ element type that has a dtype: bool, integers, float, double, and complex numbers of the latter two.
template <class T>
concept Element = (std::is_arithmetic_v<T> && sizeof(T) <= 8) || ComplexElement<T>;
/// The dtype of C++ type T, by size and signedness: `float` -> float32, `long` -> int64, `char` by its signedness on this platform,
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

/// Prints name().
SHARDARRAY_API std::ostream& operator<<(std::ostream& os, DType t);

}  // namespace shardarray
