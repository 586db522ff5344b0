// Functions of arrays: NumPy's names, JAX's types and values. Elementwise ones are in math.h, special.h and activations.h.
//
// Negative axes count from the end; one that does not exist or is repeated throws ShapeError. Results have the dtype of x unless stated
// otherwise; several operands are promoted (see promote_types). All throw Error for an absent array, DonationError for a donated one,
// ShapeError for a result of 2^62 bytes or more, DTypeError for complex operands where these are meaningless (see complex.h). They are
// function objects, which can be passed to vmap and jit.
#pragma once
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shardarray/activations.h"
#include "shardarray/array.h"
#include "shardarray/math.h"
#include "shardarray/special.h"

namespace shardarray {

// ---------------------------------------------------------------- reductions
/// Reduces over all axes unless axes are given: `sum(x)`, `sum(x, 0)`, `sum(x, {0, 1})`, `sum(x, -1, {.keepdims = true})`,
/// `sum(x, {.axis = {0, 1}, .keepdims = true, .dtype = float64})`. The result is x without these axes (keepdims: with size 1), strong, in
/// the dtype stated by each doc, or `.dtype`. `.where` excludes elements, `.initial` adds one, as in NumPy:
/// `max(x, {.where = x < 9, .initial = 0})`. An elementwise operand is computed on the fly without memory: `sum(y == 3)` reads y once.
template <detail::FixedString name> struct SHARDARRAY_API ReduceFunction {
  [[nodiscard]] Array operator()(const Array& x, const ReduceOptions& o = {}, Where w = Where::here()) const;
  template <detail::AxisNumber I>
  [[nodiscard]] Array operator()(const Array& x, I axis, const KeepOptions& o = {},
                                 Where w = Where::here()) const {
    return (*this)(x, detail::over({axis}, o), w);
  }
  template <detail::AxisNumber I>
  [[nodiscard]] Array operator()(const Array& x, std::initializer_list<I> axes, const KeepOptions& o = {},
                                 Where w = Where::here()) const {
    return (*this)(x, detail::over(axes, o), w);
  }
  template <std::convertible_to<Array> B>
  requires(!detail::AxisNumber<B>) [[nodiscard]] Array operator()(const Array& x, const B&) const {
    static_assert(
        !std::same_as<B, B>,
        "a reduction takes one array and axes; of two arrays use maximum(a, b) or minimum(a, b), and "
        "say {.axis = 0, .keepdims = true} for keepdims");
    return x;
  }
};
/// The sum; 0 if empty. bool and short integers are summed as int32 (unsigned: uint32), integers wrap; float16 and bfloat16 accumulate in
/// float32. For any number of elements, the error of a float32 sum is at most about 1e-6 of the sum of their magnitudes (float64: 2e-15).
inline constexpr ReduceFunction<"sum"> sum{};
/// The product; 1 if empty. Dtypes as for sum.
inline constexpr ReduceFunction<"prod"> prod{};
/// The sum divided by the number of elements; NaN if empty. Floating: float32 for bool and integers (float64 for 64-bit ones); as
/// accurate as sum. Throws DTypeError for a `.dtype` that is not floating.
inline constexpr ReduceFunction<"mean"> mean{};
/// `var(x)`, `var(x, 0)`, `var(x, {.ddof = 1})`, `var(x, 0, {.ddof = 1})`, `var(x, {0, 1}, 1)`, `var(x, {.axis = 0}, 1)`: a reduction
/// with ddof among the options or after the axes.
template <detail::FixedString name> struct SHARDARRAY_API SpreadFunction {
  [[nodiscard]] Array operator()(const Array& x, const ReduceOptions& o, std::int64_t ddof,
                                 Where w = Where::here()) const;
  [[nodiscard]] Array operator()(const Array& x, const SpreadOptions& o = {}, Where w = Where::here()) const {
    return (*this)(x,
                   ReduceOptions{.axis = o.axis, .keepdims = o.keepdims, .dtype = o.dtype, .where = o.where},
                   o.ddof, w);
  }
  template <std::same_as<ReduceOptions> O>
  [[nodiscard]] Array operator()(const Array& x, const O& o, Where w = Where::here()) const {
    return (*this)(x, o, 0, w);
  }
  template <detail::AxisNumber I>
  [[nodiscard]] Array operator()(const Array& x, I axis, const SpreadAlongOptions& o = {},
                                 Where w = Where::here()) const {
    return along(x, {axis}, o, w);
  }
  template <detail::AxisNumber I>
  [[nodiscard]] Array operator()(const Array& x, std::initializer_list<I> axes,
                                 const SpreadAlongOptions& o = {}, Where w = Where::here()) const {
    return along(x, axes, o, w);
  }
  template <detail::AxisNumber I, detail::AxisNumber D = std::int64_t>
  [[nodiscard]] Array operator()(const Array& x, I axis, D ddof, Where w = Where::here()) const {
    return (*this)(x, ReduceOptions{.axis = axis}, to_int64(ddof), w);
  }
  template <detail::AxisNumber I, detail::AxisNumber D = std::int64_t>
  [[nodiscard]] Array operator()(const Array& x, std::initializer_list<I> axes, D ddof,
                                 Where w = Where::here()) const {
    return (*this)(x, detail::over(axes), to_int64(ddof), w);
  }

 private:
  template <detail::AxisNumber I>
  [[nodiscard]] Array along(const Array& x, std::initializer_list<I> axes, const SpreadAlongOptions& o,
                            Where w) const {
    return (*this)(x, detail::over(axes, {.keepdims = o.keepdims, .dtype = o.dtype, .where = o.where}),
                   o.ddof, w);
  }
};
/// The mean squared distance to the mean, floating as mean, with the sum of n counted elements divided by n - ddof. Throws as mean.
inline constexpr SpreadFunction<"var"> var{};
/// The square root of var; its gradient is NaN if all elements are equal, as in JAX. Throws as mean. (The name hides nothing: only
/// namespaces and types are looked up before `::`.)
inline constexpr SpreadFunction<"std"> std{};
/// The largest and the smallest element; for bools or, and. NaN if any element is. Equal elements share the gradient; that of NaN is NaN.
/// `.dtype` converts beforehand. Throws ShapeError over no elements, unless `.initial` is given; Error for `.where` without `.initial`.
inline constexpr ReduceFunction<"max"> max{};
inline constexpr ReduceFunction<"min"> min{};
/// bool: whether any element is true, whether all are. Non-bool elements count as true unless zero (so does NaN). Of nothing: false,
/// true.
inline constexpr ReduceFunction<"any"> any{};
/// See any. Also selects a full dimension in a subscript: `x[{0, all}]`.
inline constexpr struct SHARDARRAY_API all_fn : ReduceFunction<"all"> {
  operator Index() const { return Index(Index::Kind::range); }
} all{};
/// int32 position of the first largest (smallest) element, or of a NaN if there is one, along one axis or in the flattened array. Throws
/// ShapeError for several axes and over no elements, DTypeError if these are more than 2^31, Error for `.where`.
inline constexpr ReduceFunction<"argmax"> argmax{};
inline constexpr ReduceFunction<"argmin"> argmin{};
/// log(sum(exp(x))) without overflow, floating as mean; -inf if all are -inf, or over no elements. Throws as mean.
inline constexpr ReduceFunction<"logsumexp"> logsumexp{};
/// log(mean(exp(x))) without overflow: logsumexp minus the logarithm of the number of elements; NaN over none.
inline constexpr ReduceFunction<"logmeanexp"> logmeanexp{};
/// Along the last axis, along other axes, or with options.
template <detail::FixedString name> struct SHARDARRAY_API SoftmaxFunction {
  [[nodiscard]] Array operator()(const Array& x, const SoftmaxOptions& o = {}, Where w = Where::here()) const;
  template <detail::AxisNumber I>
  [[nodiscard]] Array operator()(const Array& x, I axis, Where w = Where::here()) const {
    return (*this)(x, SoftmaxOptions{.axis = axis}, w);
  }
  template <detail::AxisNumber I>
  [[nodiscard]] Array operator()(const Array& x, std::initializer_list<I> axes,
                                 Where w = Where::here()) const {
    return (*this)(x, SoftmaxOptions{.axis = detail::over(axes).axis}, w);
  }
};
/// exp(x) / sum(exp(x)) along an axis without overflow, and its logarithm; of x's shape, floating as mean. NaN if all are -inf. Throws
/// ShapeError for a scalar.
inline constexpr SoftmaxFunction<"softmax"> softmax{};
inline constexpr SoftmaxFunction<"log_softmax"> log_softmax{};
/// One-hot vectors of integers, [..] -> [.., n], in `dtype`: 1 at the index, 0 elsewhere; an index out of range, including negative,
/// gives zeros. Throws DTypeError for floats, ShapeError for n < 0.
inline constexpr struct SHARDARRAY_API one_hot_fn {
  [[nodiscard]] Array operator()(const Array& x, std::int64_t n, DType dtype = float32,
                                 Where w = Where::here()) const;
} one_hot{};

// ---------------------------------------------------------------- products
// In the promoted dtype of the operands: integers wrap, bools give or of ands, float16 and bfloat16 accumulate in float32. All throw
// ShapeError if contracted sizes differ. A float32 sum of more than 8,192 products on one device is accumulated in blocks of 32: in the
// worst case, equal numbers, the error is at most 1e-6 of the sum. Shorter sums, also those of the shards of a sharded dimension, and
// those of reproducible lines are accumulated sequentially, with errors up to 1e-4. With a BLAS named by SHARDARRAY_BLAS, errors are 2e-5
// for results of at most 16,384 elements; larger results are accumulated by the BLAS in its own way.
/// [..,m,k] x [..,k,n] -> [..,m,n], batch dimensions broadcast; a vector is a row on the left or a column on the right, and that
/// dimension is dropped. Throws ShapeError for a scalar.
inline constexpr struct SHARDARRAY_API matmul_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} matmul{};
/// [a..,k] x [b..,k,n] -> [a..,b..,n]: contracts the last axis of a with the last but one (or only one) of b; multiplies with a scalar.
inline constexpr struct SHARDARRAY_API dot_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} dot{};
/// Contracts the last `axes` (2) axes of a with the first of b, or the listed pairs: the result has the remaining dimensions of a, then
/// of b. Throws ShapeError for more axes than there are.
inline constexpr struct SHARDARRAY_API tensordot_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, Where w = Where::here()) const {
    return over_last(a, b, 2, w);
  }
  template <std::integral N>
  [[nodiscard]] Array operator()(const Array& a, const Array& b, N axes, Where w = Where::here()) const {
    return over_last(a, b, to_int64(axes), w);
  }
  [[nodiscard]] Array operator()(const Array& a, const Array& b, const Shape& axes_a, const Shape& axes_b,
                                 Where w = Where::here()) const;

 private:
  [[nodiscard]] Array over_last(const Array& a, const Array& b, std::int64_t axes, Where w) const;
} tensordot{};
/// The subscripts of an einsum with the caller's line.
struct SHARDARRAY_API EinsumText {
  EinsumText(const char* t, Where w = Where::here()) : text(t), where(w) {}
  EinsumText(std::string t, Where w = Where::here()) : text(std::move(t)), where(w) {}
  EinsumText(std::string_view t, Where w = Where::here()) : text(t), where(w) {}
  std::string text;
  Where where;
};
/// `einsum("bik,kj->bij", a, b)`. Without "->", the result has the letters that occur once, in alphabetical order. "..." stands for
/// leading dimensions, which are broadcast; a dimension of size 1 is broadcast to its letter's size:
/// `einsum("...ij,...jk->...ik", a, b)`. A repeated letter in a term takes its diagonal. Operands are multiplied pairwise, in the order
/// with the fewest multiplications (for more than five operands, cheapest pair first). Throws ShapeError for subscripts that do not fit
/// the operands: terms, letters or sizes. contract: for operands in a list.
inline constexpr struct SHARDARRAY_API einsum_fn {
  template <std::convertible_to<Array>... A>
  [[nodiscard]] Array operator()(const EinsumText& t, const A&... operands) const {
    return contract(t, std::vector<Array>{Array(operands)...});
  }
  [[nodiscard]] Array contract(const EinsumText& t, const std::vector<Array>& operands) const;
} einsum{};

// ---------------------------------------------------------------- shapes
/// The same elements in row-major order with another shape: `reshape(x, {2, -1})`, `reshape(x, 2, 3)`; one size may be -1 and is
/// inferred. Throws ShapeError if the number of elements would change.
inline constexpr struct SHARDARRAY_API reshape_fn {
  [[nodiscard]] Array operator()(const Array& x, const Shape& shape, Where w = Where::here()) const;
  template <std::integral... I>
  [[nodiscard]] Array operator()(const Array& x, detail::Size first, I... sizes) const {
    return (*this)(x, Shape{first.value, to_int64(sizes)...}, first.where);
  }
} reshape{};
/// Permutes dimensions: perm[k] becomes dimension k. Empty: reversed. Throws ShapeError unless perm is a permutation.
inline constexpr struct SHARDARRAY_API transpose_fn {
  [[nodiscard]] Array operator()(const Array& x, const Shape& perm = {}, Where w = Where::here()) const;
} transpose{};
/// Swaps dimensions a and b.
inline constexpr struct SHARDARRAY_API swapaxes_fn {
  [[nodiscard]] Array operator()(const Array& x, std::int64_t a, std::int64_t b,
                                 Where w = Where::here()) const;
} swapaxes{};
/// Moves dimension `from` (from[k]) to `to` (to[k]); the others keep their order. Throws ShapeError for lists of different lengths.
inline constexpr struct SHARDARRAY_API moveaxis_fn {
  [[nodiscard]] Array operator()(const Array& x, std::int64_t from, std::int64_t to,
                                 Where w = Where::here()) const;
  [[nodiscard]] Array operator()(const Array& x, const Shape& from, const Shape& to,
                                 Where w = Where::here()) const;
} moveaxis{};
/// Inserts dimensions of size 1; axes refer to the result. Without axes: x.
inline constexpr struct SHARDARRAY_API expand_dims_fn {
  [[nodiscard]] Array operator()(const Array& x, const AxisSet& axes, Where w = Where::here()) const;
} expand_dims{};
/// Removes dimensions of size 1: all, or the given ones. Throws ShapeError for a given one of another size.
inline constexpr struct SHARDARRAY_API squeeze_fn {
  [[nodiscard]] Array operator()(const Array& x, const AxisSet& axes = {}, Where w = Where::here()) const;
} squeeze{};
/// Broadcasts x to `shape`: aligned at the last dimension, sizes must be equal, or 1 in x. Throws ShapeError otherwise.
inline constexpr struct SHARDARRAY_API broadcast_to_fn {
  [[nodiscard]] Array operator()(const Array& x, const Shape& shape, Where w = Where::here()) const;
} broadcast_to{};
/// Joins along an existing axis. dtypes are promoted. Throws ShapeError without arrays, and unless the other sizes agree.
inline constexpr struct SHARDARRAY_API concatenate_fn {
  [[nodiscard]] Array operator()(const std::vector<Array>& parts, std::int64_t axis = 0,
                                 Where w = Where::here()) const;
} concatenate{};
/// Joins arrays of one shape along a new axis of the result. dtypes are promoted. Throws ShapeError without arrays, and for different
/// shapes.
inline constexpr struct SHARDARRAY_API stack_fn {
  [[nodiscard]] Array operator()(const std::vector<Array>& parts, std::int64_t axis = 0,
                                 Where w = Where::here()) const;
} stack{};
/// Splits along an axis into `n` equal parts, at most 2^20, or at the given positions: `{3}` is one position, giving two parts, 3 means
/// three parts. Throws ShapeError if n does not divide the size, or positions decrease or are out of range.
inline constexpr struct SHARDARRAY_API split_fn {
  template <std::integral N>
  [[nodiscard]] std::vector<Array> operator()(const Array& x, N n, std::int64_t axis = 0,
                                              Where w = Where::here()) const {
    return pieces(x, to_int64(n), axis, w);
  }
  [[nodiscard]] std::vector<Array> operator()(const Array& x, const Shape& positions, std::int64_t axis = 0,
                                              Where w = Where::here()) const;

 private:
  [[nodiscard]] std::vector<Array> pieces(const Array& x, std::int64_t n, std::int64_t axis, Where w) const;
} split{};
/// Reverses the elements along the axes (default: all).
inline constexpr struct SHARDARRAY_API flip_fn {
  [[nodiscard]] Array operator()(const Array& x, const AxisSet& axes = {}, Where w = Where::here()) const;
} flip{};
/// Rotates by 90 degrees `k` times in the plane of two axes, from the first towards the second. Throws ShapeError for equal axes.
inline constexpr struct SHARDARRAY_API rot90_fn {
  [[nodiscard]] Array operator()(const Array& x, std::int64_t k = 1,
                                 std::pair<std::int64_t, std::int64_t> axes = {0, 1},
                                 Where w = Where::here()) const;
} rot90{};
/// Shifts elements cyclically towards higher indices. Without an axis: in the flattened array. Several axes: `roll(x, {1, -2}, {0, 1})`;
/// shifts of a repeated axis add up. A shift that is an array, an integer scalar, is only known at run time, so rows are gathered by
/// index. Throws ShapeError for lists of different lengths and for a non-scalar shift, DTypeError for a non-integer one.
inline constexpr struct SHARDARRAY_API roll_fn {
  [[nodiscard]] Array operator()(const Array& x, std::int64_t shift,
                                 std::optional<std::int64_t> axis = std::nullopt,
                                 Where w = Where::here()) const;
  [[nodiscard]] Array operator()(const Array& x, const Shape& shifts, const Shape& axes,
                                 Where w = Where::here()) const;
  template <std::same_as<Array> A>
  [[nodiscard]] Array operator()(const Array& x, const A& shift,
                                 std::optional<std::int64_t> axis = std::nullopt,
                                 Where w = Where::here()) const {
    return by_value(x, shift, axis, w);
  }

 private:
  Array by_value(const Array& x, const Array& shift, std::optional<std::int64_t> axis, Where w) const;
} roll{};
/// How pad fills: with the edge elements, mirrored (reflect: without, symmetric: with repeated edge elements), or periodically.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class PadMode : std::uint8_t { edge, reflect, symmetric, wrap };
#pragma GCC diagnostic pop
/// Pads each dimension before and after: `pad(x, {{1, 2}, {0, 0}}, value)`; one number pads everywhere. The value is a number, converted
/// to x's dtype (2.5 is 2 in integers). Throws ShapeError for a negative width and unless there is one pair per dimension, DTypeError for
/// an integer that the dtype cannot represent, Error for a computed value. With a mode instead of a value: `pad(x, 2, PadMode::edge)`,
/// which throws ShapeError if an empty dimension would grow.
inline constexpr struct SHARDARRAY_API pad_fn {
  [[nodiscard]] Array operator()(const Array& x,
                                 const std::vector<std::pair<std::int64_t, std::int64_t>>& widths,
                                 const Array& value = 0, Where w = Where::here()) const;
  template <std::integral I>
  [[nodiscard]] Array operator()(const Array& x, I width, const Array& value = 0,
                                 Where w = Where::here()) const {
    return (*this)(x, std::vector<std::pair<std::int64_t, std::int64_t>>(x.shape().size(), {width, width}),
                   value, w);
  }
  [[nodiscard]] Array operator()(const Array& x,
                                 const std::vector<std::pair<std::int64_t, std::int64_t>>& widths,
                                 PadMode mode, Where w = Where::here()) const;
  template <std::integral I>
  [[nodiscard]] Array operator()(const Array& x, I width, PadMode mode, Where w = Where::here()) const {
    return (*this)(x, std::vector<std::pair<std::int64_t, std::int64_t>>(x.shape().size(), {width, width}),
                   mode, w);
  }
} pad{};
/// Zeroes elements above (tril) or below (triu) diagonal k of the last two dimensions; k = 0 is the main one, k > 0 is above it. Throws
/// ShapeError for a rank below 2.
inline constexpr struct SHARDARRAY_API tril_fn {
  [[nodiscard]] Array operator()(const Array& x, std::int64_t k = 0, Where w = Where::here()) const;
} tril{};
inline constexpr struct SHARDARRAY_API triu_fn {
  [[nodiscard]] Array operator()(const Array& x, std::int64_t k = 0, Where w = Where::here()) const;
} triu{};

// ---------------------------------------------------------------- running reductions
/// `cumsum(x)`, `cumsum(x, 0)`, `cumsum(x, 0, {.reverse = true})`, `cumsum(x, {.axis = 0, .reverse = true})`; throws ShapeError for an
/// axis that x does not have.
template <detail::FixedString name> struct SHARDARRAY_API CumulativeFunction {
  [[nodiscard]] Array operator()(const Array& x, const CumulativeOptions& o = {},
                                 Where w = Where::here()) const;
  template <std::integral I>
  [[nodiscard]] Array operator()(const Array& x, I axis, const CumulativeAlongOptions& o = {},
                                 Where w = Where::here()) const {
    return (*this)(x, {.axis = to_int64(axis), .reverse = o.reverse, .dtype = o.dtype}, w);
  }
};
/// Of the shape of x, or [size] without an axis: element i combines elements 0 .. i. Integers keep their dtype and wrap; bool sums and
/// products are int32. Floats are combined in blocks of 1024, so rounding errors do not grow with their number; sums of non-negative
/// numbers never decrease. float16 and bfloat16 accumulate in float32. Along a sharded dimension every device scans its own shard, and
/// only the shards' last elements move; but float sums and products of reproducible lines are not sharded.
inline constexpr CumulativeFunction<"cumsum"> cumsum{};
/// Dtypes as for cumsum. Blocks and shards are multiplied separately: if one of them overflows, a preceding 0 gives NaN, not 0.
inline constexpr CumulativeFunction<"cumprod"> cumprod{};
/// The running maximum (minimum) in the dtype of x; NaN from the first NaN on. Equal elements share the gradient as in JAX; NaN has none.
inline constexpr CumulativeFunction<"cummax"> cummax{};
inline constexpr CumulativeFunction<"cummin"> cummin{};

// ---------------------------------------------------------------- positions
/// Elements at integer `index` along an axis: [..a, n, c..] and [i..] -> [..a, i.., c..]; without an axis: of the flattened array. Out of
/// range it gives NaN (integers: the lowest, unsigned: the highest value, bool: true), or what the mode says. Negative indices count from
/// the end; with clip they mean 0, as in NumPy. Throws DTypeError unless the index is an integer (bool is not).
inline constexpr struct SHARDARRAY_API take_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& index,
                                 std::optional<std::int64_t> axis = std::nullopt,
                                 TakeMode mode = TakeMode::fill, Where w = Where::here()) const;
} take{};
/// Options of sorting: `sort(x, {.axis = 0, .descending = true})`.
struct SortOptions {
  std::optional<std::int64_t> axis = -1;  ///< none: of the flattened array
  Flag descending = false;                ///< from last to first: NaN first, true before false
};
/// Options after an axis: `sort(x, 0, {.descending = true})`.
struct SortAlongOptions {
  Flag descending = false;  ///< as in SortOptions
};
/// Options of sorting several operands: `sort({a, b, c}, {.num_keys = 2})`.
struct SortOperandsOptions {
  std::int64_t axis = -1;
  std::int64_t num_keys = 1;  ///< number of leading operands used as keys
};
/// Sorts along an axis, ascending, NaN last, false before true; stable: equal elements keep their order, also when descending. Gradients
/// return to the elements' origins. A long, evenly sharded axis is sorted in place and moves twice; then, for floats sorted alone, the
/// order of 0 and -0 is unspecified, except for `reproducible` lines. Throws ShapeError for a scalar.
inline constexpr struct SHARDARRAY_API sort_fn {
  [[nodiscard]] Array operator()(const Array& x, const SortOptions& o = {}, Where w = Where::here()) const;
  template <std::integral I>
  [[nodiscard]] Array operator()(const Array& x, I axis, const SortAlongOptions& o = {},
                                 Where w = Where::here()) const {
    return (*this)(x, SortOptions{.axis = to_int64(axis), .descending = o.descending}, w);
  }
  /// lax.sort: sorts all operands by the first num_keys of them, lexicographically. Throws ShapeError without operands and for different
  /// shapes, Error for an invalid number of keys.
  [[nodiscard]] std::vector<Array> operator()(const std::vector<Array>& operands,
                                              const SortOperandsOptions& o = {},
                                              Where w = Where::here()) const;
} sort{};
/// int32 positions that sort x, of its shape. Throws as sort, and DTypeError for an axis longer than 2^31.
inline constexpr struct SHARDARRAY_API argsort_fn {
  [[nodiscard]] Array operator()(const Array& x, const SortOptions& o = {}, Where w = Where::here()) const;
  template <std::integral I>
  [[nodiscard]] Array operator()(const Array& x, I axis, const SortAlongOptions& o = {},
                                 Where w = Where::here()) const {
    return (*this)(x, SortOptions{.axis = to_int64(axis), .descending = o.descending}, w);
  }
} argsort{};

// ---------------------------------------------------------------- creation
// New arrays: uncommitted, on the default device. Throw ShapeError for negative sizes.
/// Zeros and ones of `shape` (`zeros({2, 3})`), or of that many elements for a number; float32 by default.
inline constexpr struct SHARDARRAY_API zeros_fn {
  [[nodiscard]] Array operator()(const Shape& shape, DType dtype = float32, Where w = Where::here()) const;
  template <std::integral N>
  [[nodiscard]] Array operator()(N n, DType dtype = float32, Where w = Where::here()) const {
    return (*this)(Shape{to_int64(n)}, dtype, w);
  }
} zeros{};
/// Same as zeros: there is no uninitialised memory.
inline constexpr zeros_fn empty{};
inline constexpr struct SHARDARRAY_API ones_fn {
  [[nodiscard]] Array operator()(const Shape& shape, DType dtype = float32, Where w = Where::here()) const;
  template <std::integral N>
  [[nodiscard]] Array operator()(N n, DType dtype = float32, Where w = Where::here()) const {
    return (*this)(Shape{to_int64(n)}, dtype, w);
  }
} ones{};
/// `value` broadcast to `shape` (a number: that many elements), in its dtype (weak for a number), or converted to `dtype` as by astype.
/// Throws ShapeError if it does not fit, DTypeError for an integer that the dtype cannot represent.
inline constexpr struct SHARDARRAY_API full_fn {
  [[nodiscard]] Array operator()(const Shape& shape, const Array& value,
                                 std::optional<DType> dtype = std::nullopt, Where w = Where::here()) const;
  template <std::integral N>
  [[nodiscard]] Array operator()(N n, const Array& value, std::optional<DType> dtype = std::nullopt,
                                 Where w = Where::here()) const {
    return (*this)(Shape{to_int64(n)}, value, dtype, w);
  }
} full{};
/// The *_like functions: shape and dtype of x (or `dtype`), with the same sharding, committed if x is. The values of x are not read.
/// empty_like is zeros_like; full_like throws as full.
inline constexpr struct SHARDARRAY_API zeros_like_fn {
  [[nodiscard]] Array operator()(const Array& x, std::optional<DType> dtype = std::nullopt,
                                 Where w = Where::here()) const;
} zeros_like{};
inline constexpr zeros_like_fn empty_like{};
inline constexpr struct SHARDARRAY_API ones_like_fn {
  [[nodiscard]] Array operator()(const Array& x, std::optional<DType> dtype = std::nullopt,
                                 Where w = Where::here()) const;
} ones_like{};
inline constexpr struct SHARDARRAY_API full_like_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& value,
                                 std::optional<DType> dtype = std::nullopt, Where w = Where::here()) const;
} full_like{};
/// start (default 0), start + step (default 1), ... below stop (above it for step < 0), ceil((stop - start) / step) values: int32 for
/// integers, else float32. For an integer dtype, float start and step are truncated after counting. Throws ShapeError for step 0,
/// infinite bounds and integers beyond int64, DTypeError if a value does not fit into an integer dtype: `arange(5000000000, int64)` (JAX
/// wraps).
inline constexpr struct SHARDARRAY_API arange_fn {
  template <Element T>
  [[nodiscard]] Array operator()(T stop, std::optional<DType> dtype = std::nullopt,
                                 Where w = Where::here()) const {
    return (*this)(T(0), stop, T(1), dtype, w);
  }
  template <Element A, Element B>
  [[nodiscard]] Array operator()(A start, B stop, std::optional<DType> dtype = std::nullopt,
                                 Where w = Where::here()) const {
    return (*this)(start, stop, 1, dtype, w);
  }
  template <Element A, Element B, Element C>
  [[nodiscard]] Array operator()(A start, B stop, C step, std::optional<DType> dtype = std::nullopt,
                                 Where w = Where::here()) const {
    if constexpr (std::floating_point<A> || std::floating_point<B> || std::floating_point<C>)
      return floats(static_cast<double>(start), static_cast<double>(stop), static_cast<double>(step),
                    dtype.value_or(float32), w);
    else return integers(bound(start), bound(stop), bound(step), dtype.value_or(int32), w);
  }
  [[nodiscard]] Array floats(double start, double stop, double step, DType dtype, Where w) const;
  [[nodiscard]] Array integers(std::int64_t start, std::int64_t stop, std::int64_t step, DType dtype,
                               Where w) const;

 private:
  [[noreturn]] static void refuse(std::uint64_t bound);
  template <std::integral I> static std::int64_t bound(I i) {
    const std::int64_t v = to_int64(i);
    if (static_cast<I>(v) != i) refuse(static_cast<std::uint64_t>(i));
    return v;
  }
} arange{};
/// Options of linspace().
struct LinspaceOptions {
  bool endpoint = true;   ///< stop is the last value; otherwise the one after it
  DType dtype = float32;  ///< integers: rounded down
};
/// [num]: evenly spaced values from start to stop; 16-bit floats are computed in float32, integers in float64. Throws ShapeError for num
/// < 0.
inline constexpr struct SHARDARRAY_API linspace_fn {
  [[nodiscard]] Array operator()(double start, double stop, std::int64_t num = 50,
                                 const LinspaceOptions& o = {}, Where w = Where::here()) const;
} linspace{};
/// [n, m]: ones on diagonal k (k > 0: above the main one; out of range: none), zeros elsewhere. m defaults to n.
inline constexpr struct SHARDARRAY_API eye_fn {
  [[nodiscard]] Array operator()(std::int64_t n, std::optional<std::int64_t> m = std::nullopt,
                                 std::int64_t k = 0, DType dtype = float32, Where w = Where::here()) const;
} eye{};

}  // namespace shardarray
