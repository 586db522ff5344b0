// Sums of the fake NCCL: around a ring of the ranks.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "cuda/libraries.h"

namespace shardarray::testing {

using cuda::Nccl;

inline std::size_t bytes_of_fake_type(int type) {
  switch (type) {
    case Nccl::int8:
    case Nccl::uint8: return 1;
    case Nccl::int32:
    case Nccl::uint32:
    case Nccl::real32: return 4;
    default: return 8;
  }
}

template <class T> T combined(int reduction, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (reduction == Nccl::max) return std::fmax(a, b);
    if (reduction == Nccl::min) return std::fmin(a, b);
    return reduction == Nccl::sum ? a + b : a * b;
  } else {
    using U = std::make_unsigned_t<T>;
    if (reduction == Nccl::max) return a < b ? b : a;
    if (reduction == Nccl::min) return b < a ? b : a;
    return static_cast<T>(reduction == Nccl::sum ? static_cast<U>(a) + static_cast<U>(b)
                                                 : static_cast<U>(a) * static_cast<U>(b));
  }
}
/// Element i of each, from the rank behind the one that owns its part, around the ring.
template <class T>
T around(const std::vector<const std::byte*>& from, std::size_t i, std::size_t owner, int reduction) {
  const auto at = [&](std::size_t k) {
    T x;
    std::memcpy(&x, from[(owner + 1 + k) % from.size()] + i * sizeof x, sizeof x);
    return x;
  };
  T x = at(0);
  for (std::size_t k = 1; k < from.size(); k++) x = combined(reduction, x, at(k));
  return x;
}
template <class T>
void reduce_typed(const std::vector<const std::byte*>& from, std::size_t count, bool scatter, int reduction,
                  std::vector<std::vector<std::byte>>& to) {
  const std::size_t ranks = from.size(), all = scatter ? count * ranks : count;
  for (std::size_t i = 0; i < all; i++) {
    const std::size_t owner = scatter ? i / count : i * ranks / all;
    const T x = around<T>(from, i, owner, reduction);
    for (std::size_t r = 0; r < ranks; r++)
      if (!scatter || r == owner)
        std::memcpy(to[r].data() + (scatter ? i - owner * count : i) * sizeof x, &x, sizeof x);
  }
}
/// `to`: what each rank gets of all, or, scattered, of `count` elements for each.
inline void reduce_around(const std::vector<const std::byte*>& from, int type, std::size_t count,
                          bool scatter, int reduction, std::vector<std::vector<std::byte>>& to) {
  const auto of = [&]<class T>(T) { reduce_typed<T>(from, count, scatter, reduction, to); };
  switch (type) {
    case Nccl::int8: return of(std::int8_t());
    case Nccl::uint8: return of(std::uint8_t());
    case Nccl::int32: return of(std::int32_t());
    case Nccl::uint32: return of(std::uint32_t());
    case Nccl::int64: return of(std::int64_t());
    case Nccl::uint64: return of(std::uint64_t());
    case Nccl::real32: return of(float());
    default: return of(double());
  }
}

}  // namespace shardarray::testing
