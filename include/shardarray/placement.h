// Arrays from host data; and the untemplated functions that filter_shard.h builds on.
#pragma once
#include <functional>
#include <span>

#include "shardarray/array.h"
#include "shardarray/export.h"

namespace shardarray {

namespace core {

/// Inside a trace, constrains `x`; outside, places it (without evaluation: the future value is placed). `path` is for messages.
[[nodiscard]] SHARDARRAY_API Array shard_leaf(const Array& x, const Sharding& s, const std::string& path,
                                              Where w);
/// `x` committed to `s`; `x` itself if it is already there.
[[nodiscard]] SHARDARRAY_API Array device_put_leaf(const Array& x, const Sharding& s, const std::string& path,
                                                   Where w);
/// Computes all values in one program. No absent arrays.
SHARDARRAY_API void eval_leaves(std::span<const Array> arrays);
/// A copy of row-major host data, uncommitted on the default device; a constant inside a trace.
[[nodiscard]] SHARDARRAY_API Array make_array(const void* data, DType dtype, const Shape& shape, Where w);
/// One shard per device of this process, requested by index; a replicated shard is requested once. Throws ShapeError for a shard of
/// another shape.
[[nodiscard]] SHARDARRAY_API Array from_callback(const Shape& shape, const Sharding& s,
                                                 const std::function<Array(const ShardIndex&)>& piece,
                                                 Where w);

}  // namespace core

/// The shape argument of array(): `{2, 3}`, or nothing for the shape of the values.
struct SHARDARRAY_API ShapeOf {
  ShapeOf() = default;
  ShapeOf(const Shape& s) : shape(s) {}
  ShapeOf(std::initializer_list<std::int64_t> s) : shape(Shape(s)) {}
  std::optional<Shape> shape;
};

/// Nested braces of numbers: `{{1, 2}, {3, 4}}`; a single number is a scalar, `{}` is float32[0].
class SHARDARRAY_API NestedList {
 public:
  template <Element T>
  NestedList(T v)
      : kind_(ComplexElement<T>        ? DType::complex64
              : std::same_as<T, bool>  ? DType::bool_
              : std::floating_point<T> ? DType::float32
                                       : DType::int32) {
    if constexpr (ComplexElement<T>) real_ = v.real(), imag_ = v.imag();
    else if constexpr (std::floating_point<T>) real_ = static_cast<double>(v);
    else bits_ = static_cast<std::uint64_t>(v);
    if constexpr (std::is_unsigned_v<T>) is_unsigned_ = true;
  }
  NestedList(std::initializer_list<NestedList> entries) : is_list_(true), entries_(entries) {}

  /// The widest kind among the numbers: bool, int32, float32 or complex64.
  [[nodiscard]] DType kind() const;
  /// The sizes of the nesting; throws ShapeError if rows differ.
  [[nodiscard]] Shape shape() const;
  /// Appends all numbers in row-major order.
  template <class T> void append_to(std::vector<T>& out) const {
    if (!is_list_) out.push_back(number<T>());
    for (const NestedList& e : entries_) e.append_to(out);
  }
  /// Throws DTypeError unless `dtype` can represent all integers.
  void check_values(DType dtype, bool is_named) const;
  /// True if some integer exceeds 2^63 - 1.
  [[nodiscard]] bool has_large() const;

 private:
  template <class T> T number() const {
    if constexpr (ComplexElement<T>) {
      using Part = typename T::value_type;
      if (kind_ == DType::complex64) return {static_cast<Part>(real_), static_cast<Part>(imag_)};
      return number<Part>();
    } else {
      return real_number<T>();
    }
  }
  template <class T> T real_number() const {
    if (kind_ == DType::float32) return static_cast<T>(real_);
    return is_unsigned_ ? static_cast<T>(bits_) : static_cast<T>(static_cast<std::int64_t>(bits_));
  }
  bool is_list_ = false, is_unsigned_ = false;
  DType kind_ = DType::float32;  ///< of the number: bool, int32, float32 or complex64
  double real_ = 0, imag_ = 0;
  std::uint64_t bits_ = 0;  ///< of an integer
  std::vector<NestedList> entries_;
};

namespace detail {
/// The number `x` as `dtype`. Throws DTypeError for an integer that `dtype` cannot represent.
[[nodiscard]] SHARDARRAY_API Array number_array(const Array& x, DType dtype, Where w);
[[nodiscard]] SHARDARRAY_API Array host_array(const void* data, DType stored, std::size_t size,
                                              const ShapeOf& shape, std::optional<DType> dtype, Where w);
template <class C>
concept HostRange = std::ranges::contiguous_range<C> && Element<std::ranges::range_value_t<C>>;
}  // namespace detail

/// A new array with the values' shape or `shape`, row-major: `array({{1, 2}, {3, 4}})`, `array({1, 2, 3, 4}, {2, 2})`. Only bools give
/// bool, with integers int32, with any float float32, unless `dtype` is given: floats are then truncated to integers. The array is
/// uncommitted on the default device; a constant inside a trace. Throws ShapeError if rows differ in length or the shape has another
/// number of elements, DTypeError for an integer that the (integer) dtype cannot represent, and for complex numbers in a real dtype.
[[nodiscard]] SHARDARRAY_API Array array(const NestedList& values, const ShapeOf& shape = {},
                                         std::optional<DType> dtype = std::nullopt, Where w = Where::here());
[[nodiscard]] inline Array array(const NestedList& values, DType dtype, Where w = Where::here()) {
  return array(values, ShapeOf(), dtype, w);
}
/// From a span, vector or std::array, keeping its element type: a vector of double gives float64. The shape is [n] unless given. Another
/// `dtype` converts as astype() does: integers wrap. Throws ShapeError as above, OutOfMemory.
template <detail::HostRange C>
[[nodiscard]] Array array(const C& values, const ShapeOf& shape = {},
                          std::optional<DType> dtype = std::nullopt, Where w = Where::here()) {
  const auto n = static_cast<std::size_t>(std::ranges::size(values));
  return detail::host_array(std::ranges::data(values), dtype_of<std::ranges::range_value_t<C>>(), n, shape,
                            dtype, w);
}
template <detail::HostRange C>
[[nodiscard]] Array array(const C& values, DType dtype, Where w = Where::here()) {
  return array(values, ShapeOf(), dtype, w);
}

/// Converts to an Array: an Array itself, a number (weak unless a dtype is given), or host data as taken by array(). `dtype` converts as
/// astype() does. Throws DTypeError for an integer that the dtype cannot represent.
template <class X>
[[nodiscard]] Array asarray(const X& x, std::optional<DType> dtype = std::nullopt, Where w = Where::here()) {
  Array a;
  if constexpr (std::same_as<X, Array>) a = x;
  else if constexpr (Element<X>) return dtype ? detail::number_array(Array(x, w), *dtype, w) : Array(x, w);
  else a = array(x, ShapeOf(), std::nullopt, w);
  return dtype && *dtype != a.dtype() ? a.astype(*dtype, w) : a;
}

/// A global array whose shards are returned by `piece(index)`, as an Array or host data of the shard's shape (host data may be flat).
/// `piece` is called immediately, once per distinct shard; the result has the shards' dtype and is committed. Throws ShapeError for a
/// shard of another size, DTypeError if dtypes differ, TraceError for a shard being differentiated, ShardingError if the sharding does
/// not fit the rank, DeviceError for devices that do not exist.
template <std::invocable<const ShardIndex&> F>
[[nodiscard]] Array make_array_from_callback(const Shape& shape, const Sharding& sharding, const F& piece,
                                             Where w = Where::here()) {
  return core::from_callback(
      shape, sharding, [&](const ShardIndex& index) { return asarray(piece(index), std::nullopt, w); }, w);
}
/// A global array to which each process contributes, as one array, what its own devices hold: along each dimension their parts
/// concatenated, or the full dimension. Committed, with the dtype of the data. Without `global_shape`, all shards are assumed to be as
/// long as the local ones: four processes of two devices that each pass [16, 3] get [64, 3] with P("x"), and [16, 3] if replicated.
/// Replicated data should be equal in all processes. Nothing is sent, except to add up unreduced data, by all processes together:
/// differing shapes or dtypes surface in the first run that uses the array. Evaluates the data. Throws ShapeError if sizes do not fit or
/// cannot be inferred, ShardingError for a sharding of another rank, DeviceError for data that is not on this process, TraceError inside
/// a trace and for data being differentiated, Error for an absent array, DonationError for a donated one.
[[nodiscard]] SHARDARRAY_API Array make_array_from_process_local_data(const Sharding& sharding,
                                                                      const Array& local,
                                                                      const ShapeOf& global_shape = {},
                                                                      Where w = Where::here());
/// Reorders the devices of `sharding` so that as much of x as possible is already in place: the tiles are those of device_put(x,
/// sharding), but which device holds which is free. Among all orders, the fewest elements move in total; returns the same sharding if no
/// order is better. Moves nothing, but evaluates x. Cubic time in the number of devices. Throws ShardingError if the sharding does not
/// fit x, TraceError inside a trace, Error for an absent array, DonationError for a donated one. Source: COSTA
/// (https://arxiv.org/abs/2106.06601).
[[nodiscard]] SHARDARRAY_API NamedSharding relabel_devices(const Array& x, const NamedSharding& sharding,
                                                           Where w = Where::here());
/// A global array of `shape` assembled from one single-device array per device of the sharding, in any order; without a copy, committed.
/// Evaluates the arrays. Among several processes, each passes those on its own devices; one that may have none passes the dtype. Throws
/// ShardingError unless there is exactly one per device and the rank fits, ShapeError for an array that does not have its shard's shape,
/// DTypeError if dtypes differ, TraceError for an array being differentiated.
[[nodiscard]] SHARDARRAY_API Array make_array_from_single_device_arrays(const Shape& shape,
                                                                        const Sharding& sharding,
                                                                        std::span<const Array> arrays,
                                                                        Where w = Where::here());
[[nodiscard]] SHARDARRAY_API Array make_array_from_single_device_arrays(const Shape& shape,
                                                                        const Sharding& sharding,
                                                                        std::span<const Array> arrays,
                                                                        DType dtype, Where w = Where::here());

}  // namespace shardarray
