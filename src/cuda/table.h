// Writes and reads the table of a launch.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/device.cuh"
#include "shardarray/error.h"

namespace shardarray::cuda {

class LaunchTable {
 public:
  /// Reserves room for one T, written later; the kernel's struct comes first.
  template <class T> std::uint32_t reserve() { return grow(sizeof(T)); }
  template <class T> void put(std::uint32_t offset, const T& x) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::memcpy(bytes_.data() + offset, &x, sizeof x);
  }
  template <class T> device::List<T> add(const std::vector<T>& list) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 8);
    const std::uint32_t offset = grow(list.size() * sizeof(T));
    if (!list.empty()) std::memcpy(bytes_.data() + offset, list.data(), list.size() * sizeof(T));
    return {offset, static_cast<std::uint32_t>(list.size())};
  }
  std::vector<std::byte> take() { return std::move(bytes_); }
  const std::byte* data() const { return bytes_.data(); }

 private:
  std::uint32_t grow(std::size_t bytes) {
    const std::size_t offset = (bytes_.size() + 7) / 8 * 8;
    if (offset + bytes > std::numeric_limits<std::uint32_t>::max())
      throw CompileError(
          "cuda: a step has more than 4 GiB of addresses. One launch serves a step on all devices. Use fewer "
          "devices.");
    bytes_.resize(offset + bytes);
    return static_cast<std::uint32_t>(offset);
  }
  std::vector<std::byte> bytes_;
};

/// Reads a launch's table.
class TableReader {
 public:
  explicit TableReader(const std::vector<std::byte>& table) : table_(table) {}
  template <class T> T head() const { return at<T>(0); }
  template <class T> std::vector<T> list(std::uint32_t offset, std::size_t count) const {
    std::vector<T> all(count);
    if (count > 0) std::memcpy(static_cast<void*>(all.data()), table_.data() + offset, count * sizeof(T));
    return all;
  }
  template <class T> std::vector<T> list(const device::List<T>& l) const {
    return list<T>(l.offset, l.count);
  }

 private:
  template <class T> T at(std::size_t offset) const {
    T x;
    std::memcpy(static_cast<void*>(&x), table_.data() + offset, sizeof x);
    return x;
  }
  const std::vector<std::byte>& table_;
};

}  // namespace shardarray::cuda
