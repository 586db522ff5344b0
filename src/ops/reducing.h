// What reductions share: which axes, how many elements, what is accumulated in which dtype.
#pragma once
#include "ops/api.h"

namespace shardarray {

/// The axes that `o` names, increasing. Throws ShapeError.
Shape reduced_axes(const char* function, const Array& x, const ReduceOptions& o);
/// `reduced`, which lacks `axes` of `from`: with size 1 there where keepdims.
Array with_kept(const Array& reduced, const Shape& from, const Shape& axes, bool keepdims);
/// The number of elements along these axes.
std::int64_t count_of(const Shape& shape, const Shape& axes);
Array reduced(Reducer r, const Array& x, const Shape& axes, bool keepdims);
/// `o.where` in the shape of x, of bools; absent where it is. Throws ShapeError where it cannot be broadcast.
Array chosen_elements(const char* function, const Array& x, const ReduceOptions& o);
/// x, with what does not change r's result where `chosen` is false; x where that is absent.
Array only_chosen(const Array& chosen, Reducer r, const Array& x);
/// x reduced as `o` says, but for its dtype. Throws ShapeError for an initial value that is no scalar.
Array reduced_as(const char* function, Reducer r, const Array& x, const ReduceOptions& o);
/// Throw Error where `o` has an initial value, or chooses elements.
void refuse_initial(const char* function, const ReduceOptions& o);
void refuse_choice(const char* function, const ReduceOptions& o);
/// The floating operand of mean, var and so on; strong. Throws DTypeError for a dtype of `o` that is not floating.
Array inexact(const char* function, const Array& x, const ReduceOptions& o);
/// Throws ShapeError where there is nothing along the axes.
void need_elements(const char* function, const Array& x, const Shape& axes);

}  // namespace shardarray
