// Options of reductions and running reductions: axes, and which elements count.
#pragma once
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "shardarray/dtype.h"
#include "shardarray/flag.h"
#include "shardarray/shape.h"
#include "shardarray/where.h"

namespace shardarray {

class ShardedArray;

/// Axes: all (the default), one, or a list; an empty list means none. Negative ones count from the end. Functions that take axes throw
/// ShapeError for one that does not exist or is repeated.
struct AxisSet {
  bool all = true;
  Shape axes;  ///< unless all
  AxisSet() = default;
  template <std::integral I> AxisSet(I axis) : all(false), axes{to_int64(axis)} {}
  AxisSet(std::initializer_list<std::int64_t> list) : all(false), axes(list) {}
  AxisSet(Shape list) : all(false), axes(std::move(list)) {}
};
/// An optional array or number among options.
struct ArrayOption {
  ArrayOption() = default;
  template <std::same_as<ShardedArray> A> ArrayOption(const A& x) : array(std::make_shared<const A>(x)) {}
  template <Element T>
  ArrayOption(T x, Where w = Where::here()) : array(std::make_shared<const ShardedArray>(x, w)) {}
  std::shared_ptr<const ShardedArray> array;
};
/// A bool array among options. A number does not compile: in `{last, 1}` the 1 would be taken for a mask after an axis.
struct MaskOption : ArrayOption {
  MaskOption() = default;
  template <std::same_as<ShardedArray> A> MaskOption(const A& x) : ArrayOption(x) {}
  template <Element T> MaskOption(T) {
    static_assert(
        !std::is_same_v<T, T>,
        "an option that is an array of bools is given a number: a list of axes is {.axis = {last, 1}}");
  }
};
/// Options of reductions: `sum(x, {.axis = {0, 1}, .keepdims = true})`.
struct ReduceOptions {
  AxisSet axis = {};      ///< the axes to reduce
  Flag keepdims = false;  ///< keep them with size 1
  /// Dtype of accumulation and result. Default: the operand's; sum and prod of bool and of integers shorter than 32 bits give int32
  /// (unsigned: uint32). any, all, argmax and argmin have fixed result dtypes.
  std::optional<DType> dtype = std::nullopt;
  /// A bool mask, broadcast to the operand's shape: elements where it is false are ignored. max and min then need `initial` too.
  ArrayOption where = {};
  ArrayOption initial = {};  ///< a scalar of the result's dtype: the initial value of the reduction
};
/// Options after axes: `sum(x, -1, {.keepdims = true})`.
struct KeepOptions {
  Flag keepdims = false;                      ///< as in ReduceOptions
  std::optional<DType> dtype = std::nullopt;  ///< as in ReduceOptions
  ArrayOption where = {};                     ///< as in ReduceOptions
  ArrayOption initial = {};                   ///< as in ReduceOptions
};
/// Options of var, std and their nan forms: `var(x, {.axis = 0, .ddof = 1})`.
struct SpreadOptions {
  AxisSet axis = {};                          ///< as in ReduceOptions
  Flag keepdims = false;                      ///< as in ReduceOptions
  std::optional<DType> dtype = std::nullopt;  ///< as in ReduceOptions
  ArrayOption where = {};                     ///< as in ReduceOptions
  std::int64_t ddof = 0;                      ///< the sum is divided by the number of elements minus this
};
/// The same after axes: `var(x, 0, {.ddof = 1})`.
struct SpreadAlongOptions {
  Flag keepdims = false;                      ///< as in SpreadOptions
  std::optional<DType> dtype = std::nullopt;  ///< as in SpreadOptions
  ArrayOption where = {};                     ///< as in SpreadOptions
  std::int64_t ddof = 0;                      ///< as in SpreadOptions
};
/// Options of softmax and log_softmax: `softmax(x, {.where = mask})`.
struct SoftmaxOptions {
  AxisSet axis = -1;      ///< the axes to normalise over
  MaskOption where = {};  ///< bools as in ReduceOptions: the others have probability 0
};
/// Options of running reductions: `cumsum(x, {.axis = 1, .reverse = true})`.
struct CumulativeOptions {
  std::optional<std::int64_t> axis = std::nullopt;  ///< none: of the flattened array
  Flag reverse = false;                             ///< from last to first
  /// Dtype of accumulation and result. Default: the operand's; sums and products of bool are int32.
  std::optional<DType> dtype = std::nullopt;
};
/// Options after an axis: `cumsum(x, 1, {.reverse = true})`.
struct CumulativeAlongOptions {
  Flag reverse = false;                       ///< as in CumulativeOptions
  std::optional<DType> dtype = std::nullopt;  ///< as in CumulativeOptions
};

namespace detail {
/// A number in a list of axes. Not a bool, which is likely meant for keepdims.
template <class I>
concept AxisNumber = std::integral<I> && !std::same_as<I, bool>;
/// `{0, 1}` as `{.axis = {0, 1}}`.
template <AxisNumber I> ReduceOptions over(std::initializer_list<I> axes, const KeepOptions& o = {}) {
  Shape list;
  for (const I a : axes) list.push_back(to_int64(a));
  return {.axis = std::move(list),
          .keepdims = o.keepdims,
          .dtype = o.dtype,
          .where = o.where,
          .initial = o.initial};
}
}  // namespace detail

}  // namespace shardarray
