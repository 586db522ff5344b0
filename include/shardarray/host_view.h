// Views of an array's memory on the host, like std::mdspan: `const auto v = host_view<float, 2>(x); v(i, j)`.
//
// Nothing is copied. A view keeps its memory alive: arrays may be destroyed or donated meanwhile (a donation then takes a copy). Elements
// are read-only, since arrays are immutable.
#pragma once
#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <memory>
#include <version>
#if defined(__cpp_lib_mdspan)
#include <mdspan>
#endif

#include "shardarray/array.h"

namespace shardarray {

namespace detail {
/// Memory of an array on one CPU device, of `rank` dimensions and the dtype that T = `dtype` reads.
struct SHARDARRAY_API ViewedMemory {
  const void* data = nullptr;
  Shape shape;
  std::shared_ptr<const void> keeper;
};
[[nodiscard]] SHARDARRAY_API ViewedMemory viewed_memory(const ShardedArray& x, DType dtype, std::size_t rank,
                                                        Where w);
[[noreturn]] SHARDARRAY_API void refuse_position(std::int64_t index, std::size_t dim, std::int64_t size,
                                                 Where w);
/// The first position, with the caller's line.
struct Position {
  template <std::integral I> Position(I i, Where w = Where::here()) : value(to_int64(i)), where(w) {}
  std::int64_t value;
  Where where;
};
}  // namespace detail

/// A view of `Rank` dimensions, with names and meanings of std::mdspan (extent, stride, data_handle, rank); strides count elements.
/// Copies show the same memory.
template <Element T, std::size_t Rank> class HostView {
 public:
  using value_type = T;
  using element_type = const T;
  using index_type = std::int64_t;
  using size_type = std::size_t;
  using data_handle_type = const T*;
  using reference = const T&;
  [[nodiscard]] static constexpr std::size_t rank() { return Rank; }

  /// An empty view: all extents are 0.
  HostView() = default;
  /// Used by host_view().
  HostView(const T* data, std::array<std::int64_t, Rank> extents, std::array<std::int64_t, Rank> strides,
           std::shared_ptr<const void> keeper)
      : data_(data), extents_(extents), strides_(strides), keeper_(std::move(keeper)) {}

  [[nodiscard]] const std::array<std::int64_t, Rank>& extents() const { return extents_; }
  [[nodiscard]] const std::array<std::int64_t, Rank>& strides() const { return strides_; }
  [[nodiscard]] std::int64_t extent(std::size_t d) const { return extents_[d]; }
  [[nodiscard]] std::int64_t stride(std::size_t d) const { return strides_[d]; }
  /// The first element; may be null for an empty view.
  [[nodiscard]] const T* data_handle() const { return data_; }
  [[nodiscard]] std::size_t size() const {
    std::size_t n = 1;
    for (const std::int64_t e : extents_) n *= static_cast<std::size_t>(e);
    return n;
  }
  [[nodiscard]] bool empty() const { return size() == 0; }
  /// Whether it is row-major without gaps (layout_right): `data_handle()` is the first of size() elements. True for results of
  /// host_view().
  [[nodiscard]] bool is_row_major() const {
    std::int64_t step = 1;
    for (std::size_t d = Rank; d-- > 0; step *= extents_[d])
      if (extents_[d] != 1 && strides_[d] != step) return empty();
    return true;
  }

  /// One element; positions are not checked, as in std::mdspan.
  template <std::integral... I>
  requires(sizeof...(I) == Rank) [[nodiscard]] const T& operator()(I... i) const {
    std::int64_t offset = 0;
    std::size_t d = 0;
    ((offset += static_cast<std::int64_t>(i) * strides_[d++]), ...);
    return data_[offset];
  }
  /// One element. Throws ShapeError for a position out of range, including negative ones.
  template <std::integral... I>
  requires(sizeof...(I) + 1 == Rank) [[nodiscard]] const T& at(detail::Position first, I... rest) const {
    const std::array<std::int64_t, Rank> at{first.value, to_int64(rest)...};
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < Rank; d++) {
      if (at[d] < 0 || at[d] >= extents_[d]) detail::refuse_position(at[d], d, extents_[d], first.where);
      offset += at[d] * strides_[d];
    }
    return data_[offset];
  }
  /// The slice at position i of the first dimension, with one dimension less; not checked.
  [[nodiscard]] HostView<T, Rank - 1> operator[](std::int64_t i) const requires(Rank > 1) {
    std::array<std::int64_t, Rank - 1> extents, strides;
    std::copy(extents_.begin() + 1, extents_.end(), extents.begin());
    std::copy(strides_.begin() + 1, strides_.end(), strides.begin());
    return {data_ + i * strides_[0], extents, strides, keeper_};
  }
  [[nodiscard]] const T& operator[](std::int64_t i) const requires(Rank == 1) {
    return data_[i * strides_[0]];
  }
  /// The same memory with reversed dimensions (layout_stride).
  [[nodiscard]] HostView transposed() const {
    HostView r = *this;
    std::reverse(r.extents_.begin(), r.extents_.end());
    std::reverse(r.strides_.begin(), r.strides_.end());
    return r;
  }

#if defined(__cpp_lib_mdspan)
  /// As the standard library's view, which does not own the memory: this view must outlive it.
  [[nodiscard]] std::mdspan<const T, std::dextents<std::int64_t, Rank>, std::layout_stride> mdspan() const {
    using Extents = std::dextents<std::int64_t, Rank>;
    return {data_, std::layout_stride::mapping<Extents>(Extents(extents_), strides_)};
  }
#endif

 private:
  const T* data_ = nullptr;
  std::array<std::int64_t, Rank> extents_{}, strides_{};
  std::shared_ptr<const void> keeper_;
};

/// A view of the array's elements in place; computes the array and waits for it. T is the dtype's C++ type, for float16 and bfloat16
/// std::uint16_t: their bits. For an array over several devices, view each shard: `host_view<float, 2>(x.addressable_data(i))`. Throws
/// DTypeError for another T, ShapeError for another number of dimensions, ShardingError, DeviceError, DonationError and TraceError as
/// to_dlpack().
template <Element T, std::size_t Rank>
[[nodiscard]] HostView<T, Rank> host_view(const ShardedArray& x, Where w = Where::here()) {
  const detail::ViewedMemory m = detail::viewed_memory(x, dtype_of<T>(), Rank, w);
  std::array<std::int64_t, Rank> extents, strides;
  std::int64_t step = 1;
  for (std::size_t d = Rank; d-- > 0;) {
    extents[d] = m.shape[d];
    strides[d] = step;
    step *= std::max<std::int64_t>(1, extents[d]);
  }
  return {static_cast<const T*>(m.data), extents, strides, m.keeper};
}

}  // namespace shardarray
