// ShardedArray: a global array whose shards live on many devices.
#pragma once
#include <atomic>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "shardarray/dtype.h"
#include "shardarray/error.h"
#include "shardarray/reduce_options.h"
#include "shardarray/shape.h"
#include "shardarray/sharding.h"
#include "shardarray/where.h"

namespace shardarray {

class Node;
struct Type;
class ShardedArray;
using Array = ShardedArray;  ///< short for ShardedArray, and used everywhere

/// One device's shard of an array.
struct Shard;

namespace detail {
/// The first of several sizes, with the caller's line.
struct Size {
  template <std::integral I> Size(I size, Where w = Where::here()) : value(to_int64(size)), where(w) {}
  std::int64_t value;
  Where where;
};
struct Failed;
}  // namespace detail

class ShardedArray;
/// One entry of a subscript: an integer, `slice`, `all`, `newaxis`, `ellipsis`, or an array of integers or a mask. An integer must lie in
/// [-size, size); it removes its dimension.
struct SHARDARRAY_API Index {
  enum class Kind : std::uint8_t { at, range, newaxis, ellipsis, array };  ///< at: an integer
  Kind kind = Kind::range;
  std::optional<std::int64_t> start, stop;  ///< `at`: start is the index; of a range: none is open-ended
  std::int64_t step = 1;                    ///< of a range; negative steps backwards
  Index() = default;
  template <std::integral I> Index(I i) : kind(Kind::at), start(to_int64(i)) {
    static_assert(!std::same_as<I, bool>, "x[true]: a bool is no index; write where(condition, a, b)");
  }
  template <std::same_as<char> C> Index(const C*) {
    static_assert(!std::same_as<C, C>,
                  "x[{\":\", 1}]: a text is no index; a whole dimension is x[{all, 1}], a part slice(2, 5)");
  }
  template <std::same_as<ShardedArray> A>
  Index(const A& x) : kind(Kind::array), array(std::make_shared<const A>(x)) {}
  explicit Index(Kind k) : kind(k) {}
  std::shared_ptr<const ShardedArray> array;  ///< set when kind is `array`
};
/// NumPy's start:stop:step: `x[slice(2, 5)]`, `x[slice(none, 5)]`, `x[slice(none, none, -1)]`. Negative bounds count from the end; bounds
/// beyond the dimension are clamped. Using a step of 0 throws ShapeError.
struct SHARDARRAY_API slice : Index {
  struct Bound {
    template <std::integral I> Bound(I i) : value(to_int64(i)) {}
    Bound(none_t) {}
    std::optional<std::int64_t> value;
  };
  explicit slice(Bound stop_at) { stop = stop_at.value; }
  slice(Bound from, Bound to, std::int64_t by = 1) {
    start = from.value;
    stop = to.value;
    step = by;
  }
};
/// Inserts a dimension of size 1; stands for all dimensions in between (at most once per subscript). For one full dimension: `all`
/// (ops.h).
inline constexpr struct newaxis_t {
  operator Index() const { return Index(Index::Kind::newaxis); }
} newaxis{};
inline constexpr struct ellipsis_t {
  operator Index() const { return Index(Index::Kind::ellipsis); }
} ellipsis{};
using Indices = std::vector<Index>;  ///< one per dimension, from the first; missing ones select everything
/// The contents of a subscript with the caller's line: an Index, anything that converts to one (integer, slice, array), or a list.
struct SHARDARRAY_API Subscript {
  template <std::convertible_to<Index> I>
  Subscript(const I& i, Where w = Where::here()) : indices{i}, where(w) {}
  Subscript(std::initializer_list<Index> list, Where w = Where::here()) : indices(list), where(w) {}
  Subscript(Indices list, Where w = Where::here()) : indices(std::move(list)), where(w) {}
  Indices indices;
  Where where;
};

/// How an out-of-range index is treated: fill reads NaN or a given value and drops updates, clip takes the nearest element, wrap takes
/// the index modulo the size.
// g++ 12 takes scoped enumerators for shadows of globals of the same name.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class TakeMode : std::uint8_t { fill, clip, wrap, drop = fill };
#pragma GCC diagnostic pop
/// Options for parts indexed by arrays.
struct IndexOptions {
  std::optional<TakeMode> mode = std::nullopt;      ///< default: clip for reads, drop for updates
  std::optional<double> fill_value = std::nullopt;  ///< value read out of range under fill; as in take()
};

class IndexedArray;

/// A handle to a value: cheap to copy, immutable, lazy. It is either recorded (computed when read), materialised (shards on devices),
/// absent (`Array()`; everything but has_value() and is_deleted() throws Error), or donated (everything but its type throws DonationError
/// naming the function that took it).
///
/// Sizes are non-negative and a value has fewer than 2^62 bytes; otherwise the function that would record it throws ShapeError. A value
/// too large for any memory may still be recorded; OutOfMemory is thrown once it has to be stored. Part of it can be read without storing
/// all of it, in jit or when no handle to the full value is left: `x = broadcast_to(1, {n}); x = x[0]; x.item<int>()`.
class SHARDARRAY_API ShardedArray {
 public:
  /// An absent array: `has_value()` is false.
  ShardedArray() = default;
  /// A scalar literal. Numbers are weakly typed: `x * 2.0` keeps the dtype of `x`; on their own they are float32, the first of int32,
  /// int64 and uint64 that holds the number, or complex64: `x * std::complex(0.0, 1.0)`. A bool is bool. In arithmetic, comparisons and
  /// creation, an integer that the resulting dtype cannot represent throws DTypeError: `array({1, 2}) == 4294967297` (NumPy's rule; JAX
  /// throws beyond 32 bits and wraps narrower types). Floating dtypes accept every number, rounded.
  template <Element T> ShardedArray(T value, Where w = Where::here()) {
    if constexpr (ComplexElement<T>) *this = literal_complex({value.real(), value.imag()}, w);
    else if constexpr (std::same_as<T, bool>) *this = literal(value ? 1.0 : 0.0, DType::bool_, false, w);
    else if constexpr (std::floating_point<T>)
      *this = literal(static_cast<double>(value), DType::float32, true, w);
    else if constexpr (std::is_unsigned_v<T> && sizeof(T) == 8) *this = literal_uint(value, w);
    else *this = literal_int(static_cast<std::int64_t>(value), w);
  }
  ShardedArray(const ShardedArray& o) : node_(o.node_), index_(o.index_) { retain(); }
  ShardedArray(ShardedArray&& o) noexcept : node_(std::exchange(o.node_, nullptr)), index_(o.index_) {}
  ShardedArray& operator=(const ShardedArray& o) & {
    ShardedArray copy(o);
    swap(copy);
    return *this;
  }
  ShardedArray& operator=(ShardedArray&& o) & noexcept {
    swap(o);
    return *this;
  }
  template <class T> void operator=(T&&) && {
    static_assert(
        !std::same_as<T, T>,
        "x[i] = v would change a temporary and nothing else: arrays are immutable; write x = x.at(i).set(v)");
  }
  ~ShardedArray() {
    if (node_) drop();
  }
  /// Swaps the two handles.
  void swap(ShardedArray& o) noexcept {
    std::swap(node_, o.node_);
    std::swap(index_, o.index_);
  }

  // ---- type (never evaluates)
  /// The dimension sizes, () for a scalar; the element type. ndim() is the number of dimensions, size() the number of elements.
  [[nodiscard]] const Shape& shape(Where w = Where::here()) const;
  [[nodiscard]] DType dtype(Where w = Where::here()) const;
  /// Made only of literals, or of integers and a float literal: adopts the other operand's dtype within its kind.
  [[nodiscard]] bool weak_type(Where w = Where::here()) const;
  [[nodiscard]] int ndim(Where w = Where::here()) const { return static_cast<int>(shape(w).size()); }
  [[nodiscard]] std::int64_t size(Where w = Where::here()) const;
  /// Bytes of the full value, replicas not counted.
  [[nodiscard]] std::int64_t nbytes(Where w = Where::here()) const;
  /// False for `Array()`.
  [[nodiscard]] bool has_value() const { return node_ != nullptr; }
  /// True if the array was donated; using it throws an error that says to whom.
  [[nodiscard]] bool is_deleted() const;
  /// `f32[16@data,8]`. Never evaluates: for a recorded array the sharding is known, and printed, if it was set by filter_shard or
  /// device_put, or if the array is a reinterpretation or elementwise function of such arrays and numbers.
  [[nodiscard]] std::string type_string(Where w = Where::here()) const;

  // ---- placement (evaluates; throws TraceError inside a trace)
  /// The sharding as written or, for a result, as the compiler spelled it.
  [[nodiscard]] Sharding sharding(Where w = Where::here()) const;
  /// True if placed by the user, or computed from arrays that were: its devices are never changed silently.
  [[nodiscard]] bool committed(Where w = Where::here()) const;
  /// The devices of sharding(), by id; whether each of them holds the full value.
  [[nodiscard]] std::vector<Device> devices(Where w = Where::here()) const;
  [[nodiscard]] bool is_fully_replicated(Where w = Where::here()) const;
  /// All shards of this process, in device-assignment order, without a copy.
  [[nodiscard]] std::vector<Shard> addressable_shards(Where w = Where::here()) const;
  /// The i-th shard as an array on its device (for a replicated array: the first replica). Throws ShapeError unless 0 <= i < number of
  /// shards.
  [[nodiscard]] ShardedArray addressable_data(int i, Where w = Where::here()) const;

  // ---- reading (evaluates and waits; throws TraceError inside a trace)
  /// The single element. Throws ShapeError unless size() is 1, DTypeError if T cannot represent every value of the dtype: an int32 can be
  /// read as std::int64_t or double but not as float, a float not as an integer, a complex number not as a real one, a bool as anything.
  template <Element T> [[nodiscard]] T item(Where w = Where::here()) const {
    T v{};
    read(&v, dtype_of<T>(), 1, "item", w);
    return v;
  }
  template <std::same_as<void> T = void, class R = detail::Failed> [[nodiscard]] R item() const {
    static_assert(!std::same_as<T, void>, "item: name the type that is read: x.item<float>()");
    return {};
  }
  /// All elements in row-major order, converted to T as by astype(), except that reading complex numbers as real ones throws DTypeError.
  /// Throws OutOfMemory if the process cannot hold them.
  template <Element T> [[nodiscard]] std::vector<T> to_vector(Where w = Where::here()) const {
    const Site site(w, "to_vector");
    const auto n = static_cast<std::size_t>(size());
    return detail::with_memory("to_vector", n * sizeof(T), [&] {
      if constexpr (std::same_as<T, bool>) {
        const auto values = std::make_unique<bool[]>(n);
        read(values.get(), DType::bool_, size(), "to_vector", w);
        return std::vector<bool>(values.get(), values.get() + n);
      } else {
        std::vector<T> v(n);
        read(v.data(), dtype_of<T>(), size(), "to_vector", w);
        return v;
      }
    });
  }
  template <std::same_as<void> T = void, class R = detail::Failed> [[nodiscard]] R to_vector() const {
    static_assert(!std::same_as<T, void>, "to_vector: name the type that is read: x.to_vector<float>()");
    return {};
  }
  /// Computes the value and waits for it. Throws what eval() throws, and any failure of the computation.
  const ShardedArray& block_until_ready(Where w = Where::here()) const;
  /// Reads a size-1 array as a condition: true if non-zero. Throws ShapeError for any other size.
  explicit operator bool() const { return item_bool(); }

  // ---- shorthands for the functions of math.h and ops.h, documented there: x.f(...) is f(x, ...)
  [[nodiscard]] ShardedArray astype(DType t, Where w = Where::here()) const;
  [[nodiscard]] ShardedArray reshape(const Shape& s, Where w = Where::here()) const;
  template <std::integral... I> [[nodiscard]] ShardedArray reshape(detail::Size first, I... sizes) const {
    return reshape(Shape{first.value, to_int64(sizes)...}, first.where);
  }
  [[nodiscard]] ShardedArray transpose(const Shape& perm = {}, Where w = Where::here()) const;
  [[nodiscard]] ShardedArray T(Where w = Where::here()) const { return transpose({}, w); }
  [[nodiscard]] ShardedArray sum(const ReduceOptions& o = {}, Where w = Where::here()) const;
  template <detail::AxisNumber I>
  [[nodiscard]] ShardedArray sum(I axis, const KeepOptions& o = {}, Where w = Where::here()) const {
    return sum(detail::over({axis}, o), w);
  }
  template <detail::AxisNumber I>
  [[nodiscard]] ShardedArray sum(std::initializer_list<I> axes, const KeepOptions& o = {},
                                 Where w = Where::here()) const {
    return sum(detail::over(axes, o), w);
  }
  [[nodiscard]] ShardedArray mean(const ReduceOptions& o = {}, Where w = Where::here()) const;
  template <detail::AxisNumber I>
  [[nodiscard]] ShardedArray mean(I axis, const KeepOptions& o = {}, Where w = Where::here()) const {
    return mean(detail::over({axis}, o), w);
  }
  template <detail::AxisNumber I>
  [[nodiscard]] ShardedArray mean(std::initializer_list<I> axes, const KeepOptions& o = {},
                                  Where w = Where::here()) const {
    return mean(detail::over(axes, o), w);
  }
  template <std::same_as<ShardedArray> A> [[nodiscard]] ShardedArray max(const A&) const {
    static_assert(!std::same_as<A, A>, "x.max(axes) reduces x; of two arrays use maximum(a, b)");
    return {};
  }
  [[nodiscard]] ShardedArray max(const ReduceOptions& o = {}, Where w = Where::here()) const;
  template <detail::AxisNumber I>
  [[nodiscard]] ShardedArray max(I axis, const KeepOptions& o = {}, Where w = Where::here()) const {
    return max(detail::over({axis}, o), w);
  }
  template <detail::AxisNumber I>
  [[nodiscard]] ShardedArray max(std::initializer_list<I> axes, const KeepOptions& o = {},
                                 Where w = Where::here()) const {
    return max(detail::over(axes, o), w);
  }
  template <std::same_as<ShardedArray> A> [[nodiscard]] ShardedArray min(const A&) const {
    static_assert(!std::same_as<A, A>, "x.min(axes) reduces x; of two arrays use minimum(a, b)");
    return {};
  }
  [[nodiscard]] ShardedArray min(const ReduceOptions& o = {}, Where w = Where::here()) const;
  template <detail::AxisNumber I>
  [[nodiscard]] ShardedArray min(I axis, const KeepOptions& o = {}, Where w = Where::here()) const {
    return min(detail::over({axis}, o), w);
  }
  template <detail::AxisNumber I>
  [[nodiscard]] ShardedArray min(std::initializer_list<I> axes, const KeepOptions& o = {},
                                 Where w = Where::here()) const {
    return min(detail::over(axes, o), w);
  }
  [[nodiscard]] ShardedArray prod(const ReduceOptions& o = {}, Where w = Where::here()) const;
  template <detail::AxisNumber I>
  [[nodiscard]] ShardedArray prod(I axis, const KeepOptions& o = {}, Where w = Where::here()) const {
    return prod(detail::over({axis}, o), w);
  }
  template <detail::AxisNumber I>
  [[nodiscard]] ShardedArray prod(std::initializer_list<I> axes, const KeepOptions& o = {},
                                  Where w = Where::here()) const {
    return prod(detail::over(axes, o), w);
  }
  [[nodiscard]] ShardedArray any(const ReduceOptions& o = {}, Where w = Where::here()) const;
  template <detail::AxisNumber I>
  [[nodiscard]] ShardedArray any(I axis, const KeepOptions& o = {}, Where w = Where::here()) const {
    return any(detail::over({axis}, o), w);
  }
  template <detail::AxisNumber I>
  [[nodiscard]] ShardedArray any(std::initializer_list<I> axes, const KeepOptions& o = {},
                                 Where w = Where::here()) const {
    return any(detail::over(axes, o), w);
  }
  [[nodiscard]] ShardedArray all(const ReduceOptions& o = {}, Where w = Where::here()) const;
  template <detail::AxisNumber I>
  [[nodiscard]] ShardedArray all(I axis, const KeepOptions& o = {}, Where w = Where::here()) const {
    return all(detail::over({axis}, o), w);
  }
  template <detail::AxisNumber I>
  [[nodiscard]] ShardedArray all(std::initializer_list<I> axes, const KeepOptions& o = {},
                                 Where w = Where::here()) const {
    return all(detail::over(axes, o), w);
  }
  /// NumPy indexing: `x[1]`, `x[{0, slice(2, 5), newaxis}]`, `x[rows]`, `x[{all, i, j}]`, `x[mask]`. Integer arrays are broadcast to one
  /// shape, whose dimensions replace theirs, or come first if the arrays are separated by another entry (an integer beside an array
  /// counts as an array). Negative indices count from the end; others out of range are clamped to the nearest element, which also
  /// receives the derivative (JAX drops it). A mask covers its own number of dimensions and selects where it is true; its values are
  /// read, so it cannot be traced. Throws ShapeError for an integer out of range, more entries than dimensions, a second ellipsis, a step
  /// of 0, arrays that do not broadcast, or a mask of another shape; DTypeError for arrays of other dtypes; TraceError for a mask inside
  /// a trace (use where(), or nonzero() with a size).
  [[nodiscard]] ShardedArray operator[](const Subscript& s) const;
  /// Functional updates: `x.at({0, slice(2, 5)}).set(v)`. The subscript is checked when the update is recorded.
  [[nodiscard]] IndexedArray at(Subscript s) const;

  template <std::size_t I> [[nodiscard]] ShardedArray get() const {
    static_assert(
        I > 0,
        "auto [a, b] of one Array: take rows, x[0] and x[1]; of a key: auto [a, b] = random::split<2>(key); "
        "a function gives two as std::pair(a, b)");
    return *this;
  }

  // ---- not part of the public interface
  /// Takes ownership of one reference to `node`.
  ShardedArray(Node* node, std::uint32_t index) : node_(node), index_(index) {}
  [[nodiscard]] Node* node() const { return node_; }
  [[nodiscard]] std::uint32_t index() const { return index_; }

 private:
  static ShardedArray literal(double value, DType t, bool weak, Where w);
  static ShardedArray literal_complex(std::complex<double> value, Where w);
  static ShardedArray literal_int(std::int64_t value, Where w);
  static ShardedArray literal_uint(std::uint64_t value, Where w);
  void read(void* to, DType type, std::int64_t elements, const char* what, Where w) const;
  bool item_bool() const;
  const Type& type(const char* function, Where w) const;
  void retain() const;
  void drop() const;

  Node* node_ = nullptr;
  std::uint32_t index_ = 0;
};

/// One shard of an array, see addressable_shards().
struct SHARDARRAY_API Shard {
  Device device;     ///< the device that holds it
  ShardIndex index;  ///< which part of the global value it is
  int replica_id =
      0;  ///< 0 for the first device with this part; for unreduced values (P(unreduced(...))), with this term of the sum
  ShardedArray data;  ///< a read-only view on that device
};

/// `x.at(idx)`: get() returns the indexed part; the others return a copy of `x`, with its shape and dtype, whose indexed part becomes v,
/// part + v, part * v, or the elementwise minimum or maximum of both. v is cast to the dtype of x as by astype and broadcast to the
/// part's shape. If index arrays select an element repeatedly, all its values are combined, in their order; set keeps the last. A lone
/// mask with one value for every selected element is not read: `x.at(x > 0).set(1)`. Ties in min and max share the derivative. The
/// derivative of mul by index arrays compares every row with every update. Throws what the subscript throws; ShapeError if v cannot be
/// broadcast; DTypeError for an integer that the dtype cannot represent, and for floats into integers or bools, which would lose their
/// fractions: `arange(4).at(0).set(2.7)`.
class SHARDARRAY_API IndexedArray {
 public:
  IndexedArray(ShardedArray x, Subscript s) : x_(std::move(x)), index_(std::move(s)) {}
  IndexedArray(const IndexedArray&) = default;
  IndexedArray(IndexedArray&&) = default;
  IndexedArray& operator=(const IndexedArray&) & = default;
  IndexedArray& operator=(IndexedArray&&) & = default;
  template <class T> void operator=(T&&) && {
    static_assert(!std::same_as<T, T>,
                  "x.at(i) = v would change a temporary and nothing else: arrays are immutable; write "
                  "x = x.at(i).set(v)");
  }
  template <class T> void operator+=(const T& v) const { refuse_combined(v); }
  template <class T> void operator-=(const T& v) const { refuse_combined(v); }
  template <class T> void operator*=(const T& v) const { refuse_combined(v); }
  template <class T> void operator/=(const T& v) const { refuse_combined(v); }
  ~IndexedArray() = default;
  [[nodiscard]] ShardedArray get(const IndexOptions& o = {}, Where w = Where::here()) const;
  [[nodiscard]] ShardedArray set(const ShardedArray& v, const IndexOptions& o = {},
                                 Where w = Where::here()) const;
  [[nodiscard]] ShardedArray add(const ShardedArray& v, const IndexOptions& o = {},
                                 Where w = Where::here()) const;
  [[nodiscard]] ShardedArray mul(const ShardedArray& v, const IndexOptions& o = {},
                                 Where w = Where::here()) const;
  /// x / y and x to the power y, where y is v in the indexed part and 1 elsewhere; repeated elements use the product of their values, as
  /// in JAX. The dtype is that of divide and power: integers are divided as float32.
  [[nodiscard]] ShardedArray divide(const ShardedArray& v, const IndexOptions& o = {},
                                    Where w = Where::here()) const;
  [[nodiscard]] ShardedArray power(const ShardedArray& v, const IndexOptions& o = {},
                                   Where w = Where::here()) const;
  [[nodiscard]] ShardedArray min(const ShardedArray& v, const IndexOptions& o = {},
                                 Where w = Where::here()) const;
  [[nodiscard]] ShardedArray max(const ShardedArray& v, const IndexOptions& o = {},
                                 Where w = Where::here()) const;

 private:
  template <class T> static void refuse_combined(const T&) {
    static_assert(!std::same_as<T, T>,
                  "x.at(i) += v would change a temporary and nothing else: arrays are immutable; write "
                  "x = x.at(i).add(v), or x = x.at(i).set(x[i] * v)");
  }
  ShardedArray x_;
  Subscript index_;
};

/// Prints to_string(x).
SHARDARRAY_API std::ostream& operator<<(std::ostream& os, const ShardedArray& x);
/// The values as NumPy prints them, one bracketed row per line (evaluates; TraceError inside a trace). Above 1000 elements, only the
/// first and last three of each dimension are shown. An absent array prints as `none`.
[[nodiscard]] SHARDARRAY_API std::string to_string(const ShardedArray& x, Where w = Where::here());

/// An operand of an operator: an array or a number, with the caller's line.
struct SHARDARRAY_API Operand {
  Operand(const ShardedArray& x, Where w = Where::here()) : array(x), where(w) {}
  template <Element T> Operand(T x, Where w = Where::here()) : where(w) {
    if constexpr (ComplexElement<T>) number = std::complex<double>(x.real(), x.imag());
    else if constexpr (std::same_as<T, bool>) number = x;
    else if constexpr (std::floating_point<T>) number = static_cast<double>(x);
    else if constexpr (std::is_unsigned_v<T> && sizeof(T) == 8) number = std::uint64_t{x};
    else number = static_cast<std::int64_t>(x);
  }
  /// The array, or the number as a literal array.
  [[nodiscard]] ShardedArray value() const;
  ShardedArray array;  ///< absent for a number, which is stored in `number` as the widest type of its kind
  std::variant<std::monostate, bool, double, std::int64_t, std::uint64_t, std::complex<double>> number;
  Where where;
};
/// The operators are the functions of math.h: add, subtract, multiply, divide, remainder, negative, bitwise_not (~), logical_not (!),
/// bitwise_and, bitwise_or, bitwise_xor, left_shift, right_shift, and the comparisons, which return bool arrays. They broadcast, promote
/// and throw as those do, under their names; numbers are literals. There is no && or ||: use & and | on bools.
[[nodiscard]] SHARDARRAY_API ShardedArray operator+(const Operand& a, const Operand& b);
[[nodiscard]] SHARDARRAY_API ShardedArray operator-(const Operand& a, const Operand& b);
[[nodiscard]] SHARDARRAY_API ShardedArray operator*(const Operand& a, const Operand& b);
[[nodiscard]] SHARDARRAY_API ShardedArray operator/(const Operand& a, const Operand& b);
[[nodiscard]] SHARDARRAY_API ShardedArray operator%(const Operand& a, const Operand& b);
[[nodiscard]] SHARDARRAY_API ShardedArray operator-(const Operand& a);
[[nodiscard]] SHARDARRAY_API ShardedArray operator~(const Operand& a);
/// Takes no Operand: that would match as well as the built-in ! on the condition.
[[nodiscard]] SHARDARRAY_API ShardedArray operator!(const ShardedArray& a);
[[nodiscard]] SHARDARRAY_API ShardedArray operator&(const Operand& a, const Operand& b);
[[nodiscard]] SHARDARRAY_API ShardedArray operator|(const Operand& a, const Operand& b);
[[nodiscard]] SHARDARRAY_API ShardedArray operator^(const Operand& a, const Operand& b);
[[nodiscard]] SHARDARRAY_API ShardedArray operator<<(const Operand& a, const Operand& b);
[[nodiscard]] SHARDARRAY_API ShardedArray operator>>(const Operand& a, const Operand& b);
[[nodiscard]] SHARDARRAY_API ShardedArray operator==(const Operand& a, const Operand& b);
[[nodiscard]] SHARDARRAY_API ShardedArray operator!=(const Operand& a, const Operand& b);
[[nodiscard]] SHARDARRAY_API ShardedArray operator<(const Operand& a, const Operand& b);
[[nodiscard]] SHARDARRAY_API ShardedArray operator<=(const Operand& a, const Operand& b);
[[nodiscard]] SHARDARRAY_API ShardedArray operator>(const Operand& a, const Operand& b);
[[nodiscard]] SHARDARRAY_API ShardedArray operator>=(const Operand& a, const Operand& b);

/// `x += 1` is `x = x + 1`: the name then refers to a new array.
inline ShardedArray& operator+=(ShardedArray& a, const Operand& b) { return a = Operand(a, b.where) + b; }
inline ShardedArray& operator-=(ShardedArray& a, const Operand& b) { return a = Operand(a, b.where) - b; }
inline ShardedArray& operator*=(ShardedArray& a, const Operand& b) { return a = Operand(a, b.where) * b; }
inline ShardedArray& operator/=(ShardedArray& a, const Operand& b) { return a = Operand(a, b.where) / b; }
inline ShardedArray& operator%=(ShardedArray& a, const Operand& b) { return a = Operand(a, b.where) % b; }
inline ShardedArray& operator&=(ShardedArray& a, const Operand& b) { return a = Operand(a, b.where) & b; }
inline ShardedArray& operator|=(ShardedArray& a, const Operand& b) { return a = Operand(a, b.where) | b; }
inline ShardedArray& operator^=(ShardedArray& a, const Operand& b) { return a = Operand(a, b.where) ^ b; }
inline ShardedArray& operator<<=(ShardedArray& a, const Operand& b) { return a = Operand(a, b.where) << b; }
inline ShardedArray& operator>>=(ShardedArray& a, const Operand& b) { return a = Operand(a, b.where) >> b; }

namespace detail {
template <class B> void refuse_part() {
  static_assert(!std::same_as<B, B>,
                "x[i] += v would change a temporary and nothing else: arrays are immutable; write "
                "x = x.at(i).add(v), or x = x.at(i).set(x[i] * v)");
}
}  // namespace detail
template <std::same_as<ShardedArray> A, class B> void operator+=(A&&, const B&) { detail::refuse_part<B>(); }
template <std::same_as<ShardedArray> A, class B> void operator-=(A&&, const B&) { detail::refuse_part<B>(); }
template <std::same_as<ShardedArray> A, class B> void operator*=(A&&, const B&) { detail::refuse_part<B>(); }
template <std::same_as<ShardedArray> A, class B> void operator/=(A&&, const B&) { detail::refuse_part<B>(); }

}  // namespace shardarray

/// @cond
// `auto [a, b] = random::split(key)` is not what a Python program means. Without this, compilers complain about private members.
template <> struct std::tuple_size<shardarray::ShardedArray> : std::integral_constant<std::size_t, 2> {};
template <std::size_t I> struct std::tuple_element<I, shardarray::ShardedArray> {
  using type = shardarray::ShardedArray;
};
/// @endcond

#include "shardarray/detail/failed.h"
