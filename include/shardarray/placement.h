// The erased functions below filter_shard.h: arrays from host data, and arrays put somewhere.
#pragma once
#include <functional>
#include <span>

#include "shardarray/array.h"
#include "shardarray/export.h"

namespace shardarray {

namespace core {

/// Inside a trace a constraint on `x`, outside a placement (no evaluation: the future value is placed). `path` for messages.
[[nodiscard]] SHARDARRAY_API Array shard_leaf(const Array& x, const Sharding& s, const std::string& path,
                                              Where w);
/// `x` committed to `s`; `x` itself when it is there already.
[[nodiscard]] SHARDARRAY_API Array device_put_leaf(const Array& x, const Sharding& s, const std::string& path,
                                                   Where w);
/// Computes all values in one program. Present arrays only.
SHARDARRAY_API void eval_leaves(std::span<const Array> arrays);
/// A copy of row-major host data, uncommitted on the default device; inside a trace a constant.
[[nodiscard]] SHARDARRAY_API Array make_array(const void* data, DType dtype, const Shape& shape, Where w);
/// One piece per device of this process, asked for by index; a replicated piece is asked for once.
/// Throws ShapeError for a piece of another shape.
[[nodiscard]] SHARDARRAY_API Array from_callback(const Shape& shape, const Sharding& s,
                                                 const std::function<Array(const ShardIndex&)>& piece,
                                                 Where w);

}  // namespace core

/// The shape argument of array(): `{2, 3}`, or nothing: as the values have it.
struct SHARDARRAY_API ShapeOf {
  ShapeOf() = default;
  ShapeOf(const Shape& s) : shape(s) {}
  ShapeOf(std::initializer_list<std::int64_t> s) : shape(Shape(s)) {}
  std::optional<Shape> shape;
};

/// Nested braces of numbers: `{{1, 2}, {3, 4}}`; a number alone is a scalar, `{}` float32[0].
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

  /// bool, int32, float32 or complex64: the widest kind of the numbers.
  [[nodiscard]] DType kind() const;
  /// The sizes of the nesting; throws ShapeError when rows differ.
  [[nodiscard]] Shape shape() const;
  /// Appends all numbers, row-major.
  template <class T> void append_to(std::vector<T>& out) const {
    if (!is_list_) out.push_back(number<T>());
    for (const NestedList& e : entries_) e.append_to(out);
  }
  /// Throws DTypeError unless all whole numbers are values of `dtype`.
  void check_values(DType dtype, bool is_named) const;
  /// Is a whole number above 2^63 - 1?
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
  std::uint64_t bits_ = 0;  ///< of a whole number
  std::vector<NestedList> entries_;
};

namespace detail {
/// The number `x` as `dtype`. Throws DTypeError for a whole number that is no value of it.
[[nodiscard]] SHARDARRAY_API Array number_array(const Array& x, DType dtype, Where w);
[[nodiscard]] SHARDARRAY_API Array host_array(const void* data, DType stored, std::size_t size,
                                              const ShapeOf& shape, std::optional<DType> dtype, Where w);
template <class C>
concept HostRange = std::ranges::contiguous_range<C> && Element<std::ranges::range_value_t<C>>;
}  // namespace detail

/// A new array: `array({{1, 2}, {3, 4}})`, `array({1, 2, 3, 4}, {2, 2})`, of the values' shape or of `shape`, row-major. Bools
/// alone give bool, with whole numbers int32, any float float32, unless `dtype` says otherwise: floats truncate to integers. It
/// lies uncommitted on the default device; inside a trace it is a constant. Throws ShapeError when rows differ in length or the
/// shape has another number of elements, DTypeError when a whole number is no value of the (integer) dtype and for a complex one.
[[nodiscard]] SHARDARRAY_API Array array(const NestedList& values, const ShapeOf& shape = {},
                                         std::optional<DType> dtype = std::nullopt, Where w = Where::here());
[[nodiscard]] inline Array array(const NestedList& values, DType dtype, Where w = Where::here()) {
  return array(values, ShapeOf(), dtype, w);
}
/// From a span, vector or std::array, which keeps its element type: a vector of double gives float64. Its shape is [n] unless
/// given. Another `dtype` converts as astype() does: integers wrap. Throws ShapeError as above, OutOfMemory.
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

/// An Array itself, a number (weak without a dtype), or host data as array() takes it. `dtype` converts as astype() does. Throws
/// DTypeError for a whole number that is no value of the dtype.
template <class X>
[[nodiscard]] Array asarray(const X& x, std::optional<DType> dtype = std::nullopt, Where w = Where::here()) {
  Array a;
  if constexpr (std::same_as<X, Array>) a = x;
  else if constexpr (Element<X>) return dtype ? detail::number_array(Array(x, w), *dtype, w) : Array(x, w);
  else a = array(x, ShapeOf(), std::nullopt, w);
  return dtype && *dtype != a.dtype() ? a.astype(*dtype, w) : a;
}

/// A global array of which `piece(index)` gives each part: an Array or host data of the part's shape (host data may be flat).
/// Called once per part, at once; the array has the dtype of the pieces and is committed. Throws ShapeError for a piece of
/// another size, DTypeError for pieces of different dtypes, TraceError for one that is differentiated, ShardingError when the sharding does not fit the rank, DeviceError
/// for devices that do not exist.
template <std::invocable<const ShardIndex&> F>
[[nodiscard]] Array make_array_from_callback(const Shape& shape, const Sharding& sharding, const F& piece,
                                             Where w = Where::here()) {
  return core::from_callback(
      shape, sharding, [&](const ShardIndex& index) { return asarray(piece(index), std::nullopt, w); }, w);
}
/// A global array of which each process gives what its own devices hold, as one array: along each dimension the parts that its devices
/// have, one behind the other, or the whole dimension. Committed; of the data's dtype. Without `global_shape` every part is as long
/// as those here: four processes of two devices each that give [16, 3] have [64, 3] with P("x"), and [16, 3] if it is replicated. What is
/// replicated should be the same in each. Nothing is sent but for data in summands, which all add up: shapes and dtypes that differ show
/// in the first run that uses it. Computes the data. Throws ShapeError where sizes do not fit or are not known, ShardingError for a sharding of another rank, DeviceError for data that is not here,
/// TraceError inside a trace and for data that is differentiated, Error for an absent array, DonationError for a donated one.
[[nodiscard]] SHARDARRAY_API Array make_array_from_process_local_data(const Sharding& sharding,
                                                                      const Array& local,
                                                                      const ShapeOf& global_shape = {},
                                                                      Where w = Where::here());
/// `sharding` with its devices in the order under which most of x is in its place already: the tiles that device_put(x, sharding) gives,
/// where it does not matter which device has which. Of all orders the fewest elements move, in sum over the devices; the same sharding where
/// no other order is better. Nothing moves here, x is computed. Takes time cubic in the devices. Throws ShardingError where the sharding
/// does not fit x, TraceError inside a trace, Error for an absent array, DonationError for a donated one. Source: COSTA
/// (https://arxiv.org/abs/2106.06601).
[[nodiscard]] SHARDARRAY_API NamedSharding relabel_devices(const Array& x, const NamedSharding& sharding,
                                                           Where w = Where::here());
/// A global array of `shape` made of one single-device array per device of the sharding, in any order; no copy, committed. The
/// arrays are computed. Throws ShardingError unless there is exactly one on each device and the rank fits, ShapeError for an
/// array that has not the shape of its piece, DTypeError when dtypes differ, TraceError for one that is differentiated. Of several processes each gives those on its own
/// devices; one that may have none of them says the dtype.
[[nodiscard]] SHARDARRAY_API Array make_array_from_single_device_arrays(const Shape& shape,
                                                                        const Sharding& sharding,
                                                                        std::span<const Array> arrays,
                                                                        Where w = Where::here());
[[nodiscard]] SHARDARRAY_API Array make_array_from_single_device_arrays(const Shape& shape,
                                                                        const Sharding& sharding,
                                                                        std::span<const Array> arrays,
                                                                        DType dtype, Where w = Where::here());

}  // namespace shardarray
