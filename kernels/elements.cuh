// How printed kernels read and write elements: one at a time, or runs of adjacent ones in one access.
#pragma once
#include "kernels/access.cuh"
// See device.cuh for how scalar.h is compiled.
#include "runtime/scalar.h"

namespace shardarray::device {

template <class T>
using Unsigned =
    std::conditional_t<sizeof(T) == 1, std::uint8_t,
                       std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                          std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

// Accesses use unsigned integers: an output may alias an input of another type.
template <class T> SHARDARRAY_DEVICE inline T element(Unsigned<T> bits) {
  if constexpr (std::is_same_v<T, bool>) return (bits & 1) != 0;
  else return scalar::from_bits<T>(bits);
}
template <class T> SHARDARRAY_DEVICE inline T read(const std::byte* p) {
  check_aligned(p, sizeof(T));
  return element<T>(*reinterpret_cast<const Unsigned<T>*>(p));
}
template <class T> SHARDARRAY_DEVICE inline void write(std::byte* p, T x) {
  check_aligned(p, sizeof(T));
  *reinterpret_cast<Unsigned<T>*>(p) = scalar::from_bits<Unsigned<T>>(x);
}

/// Adjacent elements, which the device moves in one access.
template <class Bits, int n> struct alignas(n * sizeof(Bits)) Run { Bits bits[n]; };
/// In words of up to 4 bytes: compilers would split many small elements into several accesses.
template <class T, int n> SHARDARRAY_DEVICE inline Run<Unsigned<T>, n> read_run(const std::byte* p) {
  using All = Run<Unsigned<T>, n>;
  using Word = std::conditional_t<sizeof(All) % 4 == 0 && sizeof(T) < 4, std::uint32_t, Unsigned<T>>;
  check_aligned(p, n * sizeof(T));
  return scalar::from_bits<All>(*reinterpret_cast<const Run<Word, sizeof(All) / sizeof(Word)>*>(p));
}
template <class T, class... More> SHARDARRAY_DEVICE inline void write_run(std::byte* p, T x, More... more) {
  using All = Run<Unsigned<T>, 1 + sizeof...(more)>;
  check_aligned(p, sizeof(All));
  *reinterpret_cast<All*>(p) = {{scalar::from_bits<Unsigned<T>>(x), scalar::from_bits<Unsigned<T>>(more)...}};
}

SHARDARRAY_DEVICE inline std::uint64_t low_bits(const std::byte* p) {
  return reinterpret_cast<std::uintptr_t>(p);
}
SHARDARRAY_DEVICE inline std::uint64_t low_bits(std::int64_t distance) {
  return static_cast<std::uint64_t>(distance);
}
/// Whether addresses, strides and extents are multiples of n, a power of two.
template <std::uint64_t n, class... X> SHARDARRAY_DEVICE inline bool multiples_of(X... x) {
  return (low_bits(x) | ...) % n == 0;
}

}  // namespace shardarray::device
