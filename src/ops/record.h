// How code below the public functions records ops: operands already have equal shapes and
// dtypes, dimensions of `Attrs` count from the last one (-1). Lines come from the open Site.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>

#include "graph/op.h"

namespace shardarray {

// Ops that other files record or ask for; their definitions say what they keep in which attribute.
extern const Op op_add, op_sub, op_mul, op_div, op_rem, op_min, op_max, op_neg, op_abs, op_sign, op_fma,
    op_floor, op_trunc, op_round, op_exp, op_exp2, op_expm1, op_log, op_log1p, op_sqrt, op_rsqrt, op_pow,
    op_sin, op_cos, op_tan, op_cosh, op_sinh, op_tanh, op_atan2, op_hypot, op_asinh, op_atanh, op_erfc,
    op_erf_inv, op_logistic, op_logaddexp, op_eq, op_ne, op_lt, op_le, op_gt, op_ge, op_not, op_is_finite,
    op_and, op_or, op_xor, op_shl, op_shr, op_where, op_cast, op_bitcast, op_stop_gradient, op_slope_of,
    op_like, op_threefry, op_philox, op_iota;
extern const Op op_broadcast, op_reshape, op_transpose, op_slice, op_reverse, op_pad, op_concatenate, op_roll,
    op_permute_rows, op_reduce, op_scan, op_dot, op_take, op_scatter, op_update, op_sort, op_triangular_solve,
    op_lu_solve, op_constraint, op_beside, op_call, op_iterate, op_host_call, op_behind, op_custom,
    op_custom_linear, op_choose, op_repeat;
extern const Op op_psum, op_pmax, op_pmin, op_all_gather, op_reduce_scatter, op_all_to_all, op_ppermute,
    op_pbroadcast, op_axis_index, op_place;

/// Zeros, ones of a type.
Array zeros_of(const Type& t);
Array one_of(const Type& t);
/// A new leading dimension of `size` equal rows.
Array add_leading(const Array& x, std::int64_t size);
/// `x`, whose first dimension holds the rows of `axis`, with one row on each device; as it is where `axis` is no device axis.
Array place_rows(const Array& x, const std::shared_ptr<const Axis>& axis);
/// `x` as a whole on every device of `axis`.
Array place_whole(const Array& x, const std::shared_ptr<const Axis>& axis);
/// a + b, where an absent operand is zero; absent when both are.
Array add_or(const Array& a, const Array& b);

/// Recording helpers. Names as the ops'; apart from the public function objects of the same names.
namespace primitive {

/// The bits of `v` as `t`, in the low bytes: floats to nearest, integers truncated and saturated (from an integer: wrapped).
std::uint64_t bits_of(DType t, double v);
std::uint64_t bits_of(DType t, std::int64_t v);
std::uint64_t bits_of(DType t, std::uint64_t v);
Array constant(DType t, std::uint64_t bits, bool weak);
/// A scalar constant's value as int64, when it is an integer literal that int64 holds.
bool is_literal_int(const Array& x, std::int64_t& value);
/// `v` in the shape and dtype of `x`; weak, so that the other operand alone decides about weakness.
Array like(const Array& x, double v);
Array full(const Shape& shape, DType t, double v);
/// The same of a whole number, exact in integers.
Array like_whole(const Array& x, std::int64_t v);
/// Is the whole number v one of the values of t? `is_large`: v is above 2^63 - 1, and given by its bits. Floating dtypes
/// round, bool asks whether it is 0: they take all.
bool is_value(DType t, std::int64_t v, bool is_large);
/// Throws DTypeError when x is a whole-number literal and no value of t, in the name of the function that is running.
void check_literal(const Array& x, DType t);

Array unary(const Op& op, const Array& x);
Array binary(const Op& op, const Array& a, const Array& b);
Array add(const Array& a, const Array& b);
Array sub(const Array& a, const Array& b);
Array mul(const Array& a, const Array& b);
Array div(const Array& a, const Array& b);
Array neg(const Array& x);
Array exp(const Array& x);
Array select(const Array& condition, const Array& a, const Array& b);
/// `value` with the derivatives of `line`, whose values nobody computes.
Array with_slope_of(const Array& value, const Array& line);
/// The same array when dtype and weakness are there already. Literals are converted at once.
Array cast(const Array& x, DType t, bool weak = false);
/// The same bits as a type of that width.
Array bitcast(const Array& x, DType t);

/// `value`, of the shape of `model`, where `model` is.
Array placed_like(const Array& value, const Array& model);
/// x on the devices of `partner`.
Array beside(const Array& x, const Array& partner);
/// x, where nothing that reads it is computed before `others` are; equal to no other node.
Array behind(const Array& x, std::span<const Array> others);
/// The results of g, called on these operands. A checkpoint's are computed again for its derivatives.
Arrays call(Graph g, std::span<const Array> operands, bool is_checkpoint = false);

/// Dimensions of `dims` count from the last one of `shape`.
Array broadcast(const Array& x, const Shape& shape, const Shape& dims);
/// numpy's broadcasting: aligned at the last dimension.
Array broadcast_to(const Array& x, const Shape& shape);
Array reshape(const Array& x, const Shape& shape);
/// perm: non-negative operand dimensions.
Array transpose(const Array& x, const Shape& perm);
Array slice(const Array& x, const Shape& lo, const Shape& hi, const Shape& step = {});
/// Part lo..hi of dimension `dim` (non-negative).
Array slice_dim(const Array& x, std::size_t dim, std::int64_t lo, std::int64_t hi);
Array reverse(const Array& x, const Shape& dims);
/// shift: one entry per dimension, in 0 .. size - 1.
Array roll(const Array& x, const Shape& shift);
Array pad(const Array& x, const Shape& lo, const Shape& hi, std::uint64_t bits = 0);
Array concatenate(std::span<const Array> parts, std::size_t dim);
/// Element k of a vector, in every place of `shape`.
Array element(const Array& vector, std::int64_t k, const Shape& shape);
/// The inverse of slice: zeros of `shape` with x at lo, lo + step, ...
Array embed(const Array& x, const Shape& lo, const Shape& step, const Shape& shape);

/// dims: non-negative, increasing; they disappear.
Array reduce(Reducer r, const Array& x, const Shape& dims);
/// Puts dimensions of size n back that `reduce` removed.
Array expand_reduced(const Array& x, const Shape& shape, const Shape& dims);
Array dot(const std::string& letters, const Array& a, const Array& b);
/// x, of which nobody takes a derivative: Error in the name of `function`.
Array underived(const Array& x, const char* function);
Array take(const Array& table, const Array& index, std::int64_t batch_rank, std::int64_t index_rank);
/// Rows of the identity, combined with the updates: sum, prod, max or min.
Array scatter(const Array& index, const Array& updates, std::int64_t batch_rank, std::int64_t index_rank,
              std::int64_t rows, Reducer reducer = Reducer::sum);
/// The number that z is, or that it is in every place; absent: none is known. It is real: other ones are joined from two.
Array number_in(const Array& z);
struct UpdateOptions {
  Reducer reducer = Reducer::none;  ///< combines the part with what is there: sum, prod, max, min
  std::int64_t batch_rank = 0;
};
/// x [b.., n..] with a part [b.., m..] written over, which begins in `dims` at `starts` [b..] (int32 or int64; shorter ones are cast);
/// elsewhere m is n. What lies outside of x is left out.
Array update(const Array& x, const Array& part, const Shape& dims, std::span<const Array> starts,
             const UpdateOptions& options = {});
/// That part of x, of these sizes; zeros where it lies outside.
Array part_at(const Array& x, const Shape& sizes, const Shape& dims, std::span<const Array> starts);
/// out[.., i, ..] = x[.., index[.., i, ..], ..] along `dim`; index may be shorter or longer there.
Array take_along(const Array& x, const Array& index, std::size_t dim);
Arrays sort(std::span<const Array> operands, std::size_t dim);
Array iota(const Shape& shape, std::size_t dim, DType t);

}  // namespace primitive
}  // namespace shardarray
