// Where the standard library has std::mdspan, a host view is one too.
#include <shardarray/shardarray.h>

#include <concepts>
#include <cstdint>
#include <mdspan>

template <class T, std::size_t Rank>
using Standard = std::mdspan<const T, std::dextents<std::int64_t, Rank>, std::layout_stride>;

float corner(const shardarray::HostView<float, 2>& v) {
  static_assert(std::same_as<decltype(v.mdspan()), Standard<float, 2>>);
  const auto m = v.mdspan();
  return m[m.extent(0) - 1, m.extent(1) - 1];
}
int first(const shardarray::HostView<int, 1>& v) { return v.mdspan()[0]; }
