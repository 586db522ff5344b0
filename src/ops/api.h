// Shared by the public functions: promotion, broadcasting, checks of axes and dtypes.
#pragma once
#include <cstdint>
#include <span>

#include "ops/record.h"
#include "shardarray/array.h"

namespace shardarray::api {

WeakType weak_type_of(const Array& x, const char* function);
/// The result dtype of these operands, by JAX's promotion lattice.
WeakType promoted(const char* function, std::initializer_list<const Array*> operands);
/// The same for a non-empty list.
WeakType promoted_all(const char* function, std::span<const Array> operands);
/// bool and integers become float32, 64-bit integers float64.
WeakType to_inexact(WeakType t);
/// Bool becomes int32.
WeakType counted(WeakType t);
/// The dtype of intermediates that are rounded once: float32 for 16-bit floats.
DType computed(DType t);
WeakType computed(WeakType t);
/// x as an operand of this type. Throws DTypeError for an integer literal that the dtype cannot represent.
inline Array cast(const Array& x, WeakType t) {
  primitive::check_literal(x, t.dtype);
  return primitive::cast(x, t.dtype, t.weak);
}
/// Makes x strong, as some of JAX's functions do.
inline Array strong(const Array& x) { return primitive::cast(x, type_of(x).dtype); }
/// The same, except for scalars.
inline Array strong_array(const Array& x) { return type_of(x).shape.empty() ? x : strong(x); }
/// For results made of literals only: under a default_device they are computed now, so that all readers find them there.
Array created(Array x);
/// Nonzero.
Array to_bool(const Array& x, const char* function);

/// The common broadcast shape. Throws ShapeError.
Shape common_shape(const char* function, std::span<const Shape> shapes);
/// The operands cast to `t` and broadcast to one shape.
Arrays together(const char* function, std::initializer_list<const Array*> operands, WeakType t);
/// The same, as floats of their common type.
inline Arrays floats_together(const char* function, std::initializer_list<const Array*> operands) {
  return together(function, operands, to_inexact(promoted(function, operands)));
}
/// f(x...) as `t`; 16-bit floats are computed in float32 and rounded once.
template <class F, class... X> Array rounded_once(WeakType t, const F& f, const X&... x) {
  const WeakType wide = computed(t);
  return cast(f(cast(x, wide)...), t);
}

/// int32 if it holds all positions in these dimensions, their sums and differences, else int64.
DType position_type(const Shape& shape);

/// `axis` as a non-negative dimension. Throws ShapeError.
std::size_t axis_of(const char* function, std::int64_t axis, const Shape& shape);
/// The same for several, sorted. Throws ShapeError for duplicates.
Shape axes_of(const char* function, const Shape& axes, const Shape& shape);

/// Throws DTypeError unless x is an integer or bool.
void need_integers(const char* function, const Array& x);
/// Throws DTypeError for a complex operand.
void need_real(const char* function, const Array& x);
/// The same for a result dtype.
void need_real(const char* function, DType t);
/// Throws DTypeError for bools.
void need_numbers(const char* function, const Array& x);
/// Throws DTypeError: `function: the operand is <type>. <rule>.`
[[noreturn]] void refuse_dtype(const char* function, const Array& x, const char* rule);

}  // namespace shardarray::api
