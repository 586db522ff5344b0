// Shared by reductions: axes, numbers of elements, accumulation dtypes.
#pragma once
#include "ops/api.h"

namespace shardarray {

/// The axes in `o`, increasing. Throws ShapeError.
Shape reduced_axes(const char* function, const Array& x, const ReduceOptions& o);
/// `reduced`, which lacks `axes` of `from`, with these as size 1 if keepdims.
Array with_kept(const Array& reduced, const Shape& from, const Shape& axes, bool keepdims);
/// The number of elements along these axes.
std::int64_t count_of(const Shape& shape, const Shape& axes);
Array reduced(Reducer r, const Array& x, const Shape& axes, bool keepdims);
/// `o.where` as bools in the shape of x; absent if not given. Throws ShapeError if it cannot be broadcast.
Array chosen_elements(const char* function, const Array& x, const ReduceOptions& o);
/// x with the reducer's identity where `chosen` is false; x if that is absent.
Array only_chosen(const Array& chosen, Reducer r, const Array& x);
/// x reduced according to `o`, except for its dtype. Throws ShapeError if the initial value is not a scalar.
Array reduced_as(const char* function, Reducer r, const Array& x, const ReduceOptions& o);
/// Throw Error if `o` has an initial value, or a mask.
void refuse_initial(const char* function, const ReduceOptions& o);
void refuse_choice(const char* function, const ReduceOptions& o);
/// The floating operand of mean, var etc.; strong. Throws DTypeError if `o` has a dtype that is not floating.
Array inexact(const char* function, const Array& x, const ReduceOptions& o);
/// Throws ShapeError if there are no elements along the axes.
void need_elements(const char* function, const Array& x, const Shape& axes);

}  // namespace shardarray
