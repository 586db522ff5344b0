// Element types and how they promote.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <type_traits>

#include "shardarray/export.h"

namespace shardarray {

/// The type of an array's elements. float16 and bfloat16 are computed in float32: every result is rounded to 16 bits, sums and
/// products of matrices once, at their end. complex64 and complex128 have no kernels yet. Constants of the same names stand
/// in the namespace: `shardarray::float32`.
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
SHARDARRAY_API std::size_t itemsize(DType t);
/// numpy's name: `float32`.
SHARDARRAY_API const char* name(DType t);
/// The short name used in types: `f32`, `i32`, `u32`, `bool`.
SHARDARRAY_API const char* short_name(DType t);
constexpr bool is_floating(DType t) { return t >= DType::float16 && t <= DType::float64; }
constexpr bool is_complex(DType t) { return t >= DType::complex64; }
/// Floating or complex: what can be differentiated.
constexpr bool is_inexact(DType t) { return t >= DType::float16; }
constexpr bool is_integer(DType t) { return t >= DType::int8 && t <= DType::uint64; }
constexpr bool is_signed_integer(DType t) { return t >= DType::int8 && t <= DType::int64; }
constexpr bool is_unsigned_integer(DType t) { return t >= DType::uint8 && t <= DType::uint64; }

/// A dtype with JAX's weakness: a weak type (a literal's) takes the other operand's dtype within its kind.
struct WeakType {
  DType dtype = DType::float32;
  bool weak = false;
  friend bool operator==(const WeakType&, const WeakType&) = default;
};
/// The dtype of `a op b` in JAX's promotion lattice. Where every operand has at most 32 bits the result has too;
/// with any 64-bit operand JAX's x64 rules hold.
SHARDARRAY_API DType promote_types(DType a, DType b);
SHARDARRAY_API WeakType promote_types(WeakType a, WeakType b);

/// A C++ element type that has a dtype: bool, the integers, float and double.
template <class T>
concept Element = std::is_arithmetic_v<T> && sizeof(T) <= 8;
/// The dtype that holds C++ type T: `float` -> float32, `std::int64_t` -> int64.
template <Element T> constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, bool>) return DType::bool_;
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

SHARDARRAY_API std::ostream& operator<<(std::ostream& os, DType t);

}  // namespace shardarray
