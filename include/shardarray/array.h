// ShardedArray: a global array whose pieces live on many devices.
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
using Array = ShardedArray;  ///< its short name, used everywhere

/// One piece of an array on one device.
struct Shard;

namespace detail {
/// The first of several sizes, and its line.
struct Size {
  template <std::integral I> Size(I size, Where w = Where::here()) : value(to_int64(size)), where(w) {}
  std::int64_t value;
  Where where;
};
struct Failed;
}  // namespace detail

class ShardedArray;
/// Part of a subscript: an integer, or `slice`, `all`, `newaxis`, `ellipsis`, or an array of integers or a mask. An integer lies in
/// [-size, size) and removes its dimension.
struct SHARDARRAY_API Index {
  enum class Kind : std::uint8_t { at, range, newaxis, ellipsis, array };  ///< at: an integer
  Kind kind = Kind::range;
  std::optional<std::int64_t> start, stop;  ///< `at`: start is the index; of a range none: from or to its end
  std::int64_t step = 1;                    ///< of a range; negative: backwards
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
  std::shared_ptr<const ShardedArray> array;  ///< of `array`
};
/// `x[slice(2, 5)]`, `x[slice(none, 5)]`, `x[slice(none, none, -1)]`: numpy's start:stop:step; negative bounds count from the end,
/// bounds beyond the dimension are cut off. A step of 0 is a ShapeError where it is used.
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
/// A new dimension of size 1, and "all dimensions between", which may stand once. The whole dimension is `all` (ops.h).
inline constexpr struct newaxis_t {
  operator Index() const { return Index(Index::Kind::newaxis); }
} newaxis{};
inline constexpr struct ellipsis_t {
  operator Index() const { return Index(Index::Kind::ellipsis); }
} ellipsis{};
using Indices = std::vector<Index>;  ///< one for each dimension from the first; missing ones are whole
/// What stands in a subscript, and its line: an Index, what is one (an integer, a slice, an array), or a list of them.
struct SHARDARRAY_API Subscript {
  template <std::convertible_to<Index> I>
  Subscript(const I& i, Where w = Where::here()) : indices{i}, where(w) {}
  Subscript(std::initializer_list<Index> list, Where w = Where::here()) : indices(list), where(w) {}
  Subscript(Indices list, Where w = Where::here()) : indices(std::move(list)), where(w) {}
  Indices indices;
  Where where;
};

/// What an index that lies outside means: nothing (what is read there is NaN or a given value, an update is dropped), the nearest
/// element, or the one that is a multiple of the size away.
// g++ 12 takes scoped enumerators for shadows of globals of the same name.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class TakeMode : std::uint8_t { fill, clip, wrap, drop = fill };
#pragma GCC diagnostic pop
/// Options of an indexed part that arrays choose.
struct IndexOptions {
  std::optional<TakeMode> mode = std::nullopt;  ///< clip where elements are read, drop where they are updated
  std::optional<double> fill_value = std::nullopt;  ///< what is read outside with fill; as take()
};

class IndexedArray;

/// A handle to a value: cheap to copy, immutable, lazy. It is recorded (computed when read), materialised (pieces on
/// devices), absent (`Array()`; every use but has_value() and is_deleted() throws Error), or given away (donated: every later use
/// but its type throws DonationError that names the donor).
///
/// Sizes are not negative, and the bytes of one value are fewer than 2^62: ShapeError where it would be recorded, in the name
/// of the function. A value that no memory holds may still be recorded; OutOfMemory comes when it has to be stored. A part of
/// it is read without storing the whole in jit, and where the whole has no handle any more:
/// `x = broadcast_to(1, {n}); x = x[0]; x.item<int>()`.
class SHARDARRAY_API ShardedArray {
 public:
  /// Absent: `has_value()` is false.
  ShardedArray() = default;
  /// A scalar literal. Numbers are weak: `x * 2.0` keeps the dtype of `x`; alone they are float32 and the first of int32,
  /// int64 and uint64 that holds the number, or complex64: `x * std::complex(0.0, 1.0)`. bool is bool. A whole number that is not among the values of the dtype that
  /// it takes is a DTypeError, in arithmetic, comparisons and creation: `array({1, 2}) == 4294967297` (NumPy's rule; JAX
  /// throws beyond 32 bits and wraps shorter ones). Floating dtypes take every number, rounded.
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
  /// Exchanges the handles.
  void swap(ShardedArray& o) noexcept {
    std::swap(node_, o.node_);
    std::swap(index_, o.index_);
  }

  // ---- type (evaluates nothing)
  /// Its dimensions; () for a scalar. The element type. Their number is ndim(), that of the elements size().
  [[nodiscard]] const Shape& shape(Where w = Where::here()) const;
  [[nodiscard]] DType dtype(Where w = Where::here()) const;
  /// Made of literals only, or of integers and a literal of floats: takes the other operand's dtype within its kind.
  [[nodiscard]] bool weak_type(Where w = Where::here()) const;
  [[nodiscard]] int ndim(Where w = Where::here()) const { return static_cast<int>(shape(w).size()); }
  [[nodiscard]] std::int64_t size(Where w = Where::here()) const;
  /// Bytes of the whole value, replicas not counted.
  [[nodiscard]] std::int64_t nbytes(Where w = Where::here()) const;
  /// False for `Array()`.
  [[nodiscard]] bool has_value() const { return node_ != nullptr; }
  /// Was donated (to whom, the message of any use says).
  [[nodiscard]] bool is_deleted() const;
  /// `f32[16@data,8]`; evaluates nothing: of a recorded array the sharding is known, and printed, where the array was given one
  /// (filter_shard, device_put), also where it was only renamed or computed elementwise from such and from numbers.
  [[nodiscard]] std::string type_string(Where w = Where::here()) const;

  // ---- placement (evaluates; throws TraceError inside a trace)
  /// As it was written or, of a result, as the compiler has spelt it.
  [[nodiscard]] Sharding sharding(Where w = Where::here()) const;
  /// Placed by the user, or computed from such: its devices are not changed silently.
  [[nodiscard]] bool committed(Where w = Where::here()) const;
  /// Those of sharding(), by id; whether each of them holds the whole value.
  [[nodiscard]] std::vector<Device> devices(Where w = Where::here()) const;
  [[nodiscard]] bool is_fully_replicated(Where w = Where::here()) const;
  /// Every piece of this process, in device-assignment order; nothing is copied.
  [[nodiscard]] std::vector<Shard> addressable_shards(Where w = Where::here()) const;
  /// The i-th piece as an array on its device (of a replicated array: the first one). Throws ShapeError unless i is from 0 to the
  /// number of pieces - 1.
  [[nodiscard]] ShardedArray addressable_data(int i, Where w = Where::here()) const;

  // ---- reading (evaluates and waits; throws TraceError inside a trace)
  /// The one element. Throws ShapeError unless size() is 1, DTypeError when T cannot hold every value of the dtype exactly:
  /// int32 is read as std::int64_t or double, not as float, a float as no integer, complex numbers as no real one, bool as anything.
  template <Element T> [[nodiscard]] T item(Where w = Where::here()) const {
    T v{};
    read(&v, dtype_of<T>(), 1, "item", w);
    return v;
  }
  template <std::same_as<void> T = void, class R = detail::Failed> [[nodiscard]] R item() const {
    static_assert(!std::same_as<T, void>, "item: name the type that is read: x.item<float>()");
    return {};
  }
  /// All elements, row-major, converted to T as astype() does it, but of complex numbers no imaginary part is dropped: that throws
  /// DTypeError. Throws OutOfMemory when the process has no place for them.
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
  /// Computes the value and waits for it. Throws as eval(), and what the work failed with.
  const ShardedArray& block_until_ready(Where w = Where::here()) const;
  /// Reads a size-1 array as a condition: not zero. Throws ShapeError for another size.
  explicit operator bool() const { return item_bool(); }

  // ---- shorthands of the functions in math.h and ops.h: x.f(...) is f(x, ...), of which the docs stand there
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
  /// numpy's subscripts: `x[1]`, `x[{0, slice(2, 5), newaxis}]`, `x[rows]`, `x[{all, i, j}]`, `x[mask]`. Arrays of integers are
  /// broadcast to one shape, whose dimensions stand where those of the arrays stood, or first where something stands between them
  /// (an integer beside an array counts as an array). Negative ones count from the end, others outside are the nearest (to which their derivative belongs; in JAX it is dropped). A mask, as
  /// long as the dimensions that it stands for, chooses what is true: its values are read, which cannot be while they are traced. Throws ShapeError for
  /// an integer out of range, more parts than dimensions, a second ellipsis, a step of 0, arrays that cannot be broadcast, masks of
  /// another shape, DTypeError for arrays of other dtypes, TraceError for a mask inside a trace: where() and nonzero() with a size
  /// do without its values.
  [[nodiscard]] ShardedArray operator[](const Subscript& s) const;
  /// Functional updates: `x.at({0, slice(2, 5)}).set(v)`. The subscript is checked where the update is recorded.
  [[nodiscard]] IndexedArray at(Subscript s) const;

  template <std::size_t I> [[nodiscard]] ShardedArray get() const {
    static_assert(
        I > 0,
        "auto [a, b] of one Array: take rows, x[0] and x[1]; of a key: auto [a, b] = random::split<2>(key); "
        "a function gives two as std::pair(a, b)");
    return *this;
  }

  // ---- below the public surface
  /// Takes over one count of `node`.
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

/// One piece of an array, see addressable_shards().
struct SHARDARRAY_API Shard {
  Device device;     ///< that holds it
  ShardIndex index;  ///< which part of the whole it is
  int replica_id =
      0;  ///< 0 for the first device that holds this part, of a sum (P(unreduced(...))) this summand of it
  ShardedArray data;  ///< a read-only view on its device
};

/// `x.at(idx)`: get, or a copy of `x`, of its shape and dtype, with the indexed part set to v, or to part + v, part * v, the
/// smaller or the larger of both. v takes the dtype of x as astype does it, and is broadcast to the part's shape. An element that
/// arrays choose several times is combined with what its values are together, combined in their order; set keeps the last. A mask
/// alone, with one value for every element that it chooses, is not read: `x.at(x > 0).set(1)`. The derivative of mul by arrays compares
/// every row with every update. Throws
/// ShapeError where v cannot be broadcast, and as a subscript does, DTypeError for a whole number that is no value of the dtype, and for
/// floats in integers or bools, whose fractions would be lost: `arange(4).at(0).set(2.7)`. Equal extrema share the derivative.
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
  /// x / y and x to the power y, where y is 1 but for the part, which is v: of an element that arrays choose several times the product
  /// of its values, as in JAX. Of the dtypes that divide and power have of these two: integers are divided as float32.
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
/// numpy's text of the values, a line for each row in brackets (evaluates; TraceError inside a trace). Of more than 1000 elements
/// the first and last three of a dimension. Of an absent array `none`.
[[nodiscard]] SHARDARRAY_API std::string to_string(const ShardedArray& x, Where w = Where::here());

/// An operand of an operator: an array or a number, and the line it stands on.
struct SHARDARRAY_API Operand {
  Operand(const ShardedArray& x, Where w = Where::here()) : array(x), where(w) {}
  template <Element T> Operand(T x, Where w = Where::here()) : where(w) {
    if constexpr (ComplexElement<T>) number = std::complex<double>(x.real(), x.imag());
    else if constexpr (std::same_as<T, bool>) number = x;
    else if constexpr (std::floating_point<T>) number = static_cast<double>(x);
    else if constexpr (std::is_unsigned_v<T> && sizeof(T) == 8) number = std::uint64_t{x};
    else number = static_cast<std::int64_t>(x);
  }
  /// The array, or the number as a literal.
  [[nodiscard]] ShardedArray value() const;
  ShardedArray array;  ///< absent for a number, which stands in `number` as the widest of its kind
  std::variant<std::monostate, bool, double, std::int64_t, std::uint64_t, std::complex<double>> number;
  Where where;
};
/// Operators are the functions of math.h: add, subtract, multiply, divide, remainder, negative, bitwise_not (~), logical_not (!),
/// bitwise_and, bitwise_or, bitwise_xor, left_shift, right_shift, and the comparisons, which give bool arrays. They broadcast,
/// promote and throw as those do, in their names; a number is a literal. There are no && and ||: use & and | of bools.
[[nodiscard]] SHARDARRAY_API ShardedArray operator+(const Operand& a, const Operand& b);
[[nodiscard]] SHARDARRAY_API ShardedArray operator-(const Operand& a, const Operand& b);
[[nodiscard]] SHARDARRAY_API ShardedArray operator*(const Operand& a, const Operand& b);
[[nodiscard]] SHARDARRAY_API ShardedArray operator/(const Operand& a, const Operand& b);
[[nodiscard]] SHARDARRAY_API ShardedArray operator%(const Operand& a, const Operand& b);
[[nodiscard]] SHARDARRAY_API ShardedArray operator-(const Operand& a);
[[nodiscard]] SHARDARRAY_API ShardedArray operator~(const Operand& a);
/// Not an Operand: that would be as good a match as the built-in ! of the condition.
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

/// `x += 1` is `x = x + 1`: another array has the name then.
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
// `auto [a, b] = random::split(key)`: not what a Python program means. Without this the compiler speaks of private members.
template <> struct std::tuple_size<shardarray::ShardedArray> : std::integral_constant<std::size_t, 2> {};
template <std::size_t I> struct std::tuple_element<I, shardarray::ShardedArray> {
  using type = shardarray::ShardedArray;
};
/// @endcond

#include "shardarray/detail/failed.h"
