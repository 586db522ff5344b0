#include "ops/api.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "base/small_vector.h"
#include "graph/trace_state.h"

namespace shardarray::api {

WeakType weak_type_of(const Array& x, const char* function) {
  const Type& t = type_of(x, function);
  return {t.dtype, t.weak};
}

WeakType promoted(const char* function, std::initializer_list<const Array*> operands) {
  WeakType t = weak_type_of(**operands.begin(), function);
  for (const Array* x : operands) t = promote_types(t, weak_type_of(*x, function));
  return t;
}

WeakType promoted_all(const char* function, std::span<const Array> operands) {
  WeakType t = weak_type_of(operands[0], function);
  for (const Array& x : operands) t = promote_types(t, weak_type_of(x, function));
  return t;
}

WeakType to_inexact(WeakType t) {
  if (is_inexact(t.dtype)) return t;
  return {t.dtype == DType::int64 || t.dtype == DType::uint64 ? DType::float64 : DType::float32, t.weak};
}

WeakType counted(WeakType t) { return t.dtype == DType::bool_ ? WeakType{DType::int32, false} : t; }

DType computed(DType t) { return t == DType::float16 || t == DType::bfloat16 ? DType::float32 : t; }
WeakType computed(WeakType t) { return {computed(t.dtype), t.weak}; }

Array created(Array x) {
  if (!x.node()->modes->default_device || !trace_state().open.empty()) return x;
  if (is_literal(*x.node())) x = record(op_identity, {x});  // a literal has no placement
  compute(x.node());
  return x;
}

Array to_bool(const Array& x, const char* function) {
  return type_of(x, function).dtype == DType::bool_ ? x : primitive::cast(x, DType::bool_);
}

Shape common_shape(const char* function, std::span<const Shape> shapes) {
  Shape result;
  for (const Shape& s : shapes) result.resize(std::max(result.size(), s.size()), 1);
  std::fill(result.begin(), result.end(), 1);
  for (const Shape& s : shapes)
    for (std::size_t k = 1; k <= s.size(); k++) {
      std::int64_t& size = result[result.size() - k];
      const std::int64_t mine = s[s.size() - k];
      if (mine != 1 && size != 1 && mine != size) {
        std::string text;
        for (const Shape& each : shapes) text += (text.empty() ? "" : ", ") + to_string(each);
        throw ShapeError(fmt::format(
            "{}: shapes {} cannot be broadcast together: sizes {} and {} meet. Aligned at the last "
            "dimension, sizes must be equal or 1. Insert dimensions with reshape or newaxis.",
            current_function(function), text, size, mine));
      }
      if (size == 1) size = mine;
    }
  return result;
}

Arrays together(const char* function, std::initializer_list<const Array*> operands, WeakType t) {
  const Site named({}, function);
  SmallVector<Shape, 3> shapes;
  bool any_strong = false;
  for (const Array* x : operands) {
    shapes.push_back(type_of(*x, function).shape);
    any_strong |= !type_of(*x).weak;
  }
  const Shape shape = common_shape(function, {shapes.begin(), shapes.end()});
  Arrays r;
  r.reserve(operands.size());
  for (const Array* x : operands) {
    const Type& given = type_of(*x);
    const bool fits =
        given.dtype == t.dtype && given.weak && any_strong;  // one strong operand makes the result strong
    r.push_back(primitive::broadcast_to(fits ? *x : cast(*x, t), shape));
  }
  return r;
}

DType position_type(const Shape& shape) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max() / 2;
  return std::all_of(shape.begin(), shape.end(), [](std::int64_t n) { return n <= most; }) ? DType::int32
                                                                                           : DType::int64;
}

std::size_t axis_of(const char* function, std::int64_t axis, const Shape& shape) {
  const auto rank = static_cast<std::int64_t>(shape.size());
  if (axis < -rank || axis >= rank)
    throw ShapeError(
        fmt::format("{}: axis {} is out of bounds for shape {} of rank {}. Axes count from 0, or from -1 at "
                    "the end. Give one that the array has.",
                    current_function(function), axis, to_string(shape), rank));
  return static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
}

Shape axes_of(const char* function, const Shape& axes, const Shape& shape) {
  Shape r;
  for (std::int64_t a : axes) r.push_back(static_cast<std::int64_t>(axis_of(function, a, shape)));
  std::sort(r.begin(), r.end());
  if (const auto* twice = std::adjacent_find(r.begin(), r.end()); twice != r.end())
    throw ShapeError(
        fmt::format("{}: axes {} name dimension {} twice. Every axis may stand once. Remove one.",
                    current_function(function), to_string(axes), *twice));
  return r;
}

void refuse_dtype(const char* function, const Array& x, const char* rule) {
  throw DTypeError(fmt::format("{}: the operand is {}. {}. Cast with astype.", current_function(function),
                               to_string(type_of(x)), rule));
}
void need_integers(const char* function, const Array& x) {
  const DType t = type_of(x, function).dtype;
  if (!is_integer(t) && t != DType::bool_) refuse_dtype(function, x, "It takes integers and bool");
}
void need_numbers(const char* function, const Array& x) {
  if (type_of(x, function).dtype == DType::bool_) refuse_dtype(function, x, "It takes numbers");
}
void need_real(const char* function, const Array& x) {
  if (is_complex(type_of(x, function).dtype)) refuse_dtype(function, x, "It takes real numbers");
}
void need_real(const char* function, DType t) {
  if (is_complex(t))
    throw DTypeError(
        fmt::format("{}: dtype {}. The result is of bool, integers or real floats. Convert it with astype.",
                    function, name(t)));
}

}  // namespace shardarray::api
