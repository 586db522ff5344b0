// The ops of the library, and how code below the public functions records them: operands already have equal shapes and
// dtypes, dimensions of `Attrs` count from the last one (-1). Lines come from the open Site.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>

#include "graph/op.h"

namespace shardarray {

// ---- elementwise: operands and results of one shape
extern const Op op_add, op_sub, op_mul, op_div, op_rem, op_min, op_max, op_pow, op_neg, op_abs, op_sign,
    op_fma, op_relu;
extern const Op op_floor, op_ceil, op_round, op_trunc;
extern const Op op_exp, op_expm1, op_log, op_log1p, op_sqrt, op_rsqrt, op_sin, op_cos, op_tan, op_tanh,
    op_sinh, op_cosh, op_asin, op_acos, op_atan, op_atan2, op_erf, op_erfc, op_erf_inv, op_logistic;
extern const Op op_eq, op_ne, op_lt, op_le, op_gt, op_ge, op_is_finite;
extern const Op op_not, op_and, op_or, op_xor, op_shl,
    op_shr;                        // bitwise; logical on bool; shr is arithmetic on signed types
extern const Op op_where;          // condition, a, b
extern const Op op_cast;           // attrs.dtype; attrs.lo = {1}: the result is weak
extern const Op op_bitcast;        // attrs.dtype, of the same width
extern const Op op_stop_gradient;  // identity without derivative
extern const Op op_like;           // operand 0, placed as operand 1, of which nothing is read
extern const Op op_threefry;       // uint32 k0, k1, c0, c1 -> two uint32
extern const Op op_iota;           // attrs.shape, dtype, dims[0]: the index along that dimension; no operands
// ---- movement
extern const Op
    op_broadcast;  // attrs.shape: the result's; dims[j]: result dimension of operand dimension j, increasing
extern const Op op_reshape;    // attrs.shape
extern const Op op_transpose;  // attrs.dims[k]: the operand dimension that becomes result dimension k
extern const Op op_slice;      // attrs.lo, hi, step >= 1, one per dimension
extern const Op op_reverse;    // attrs.dims
extern const Op
    op_pad;  // attrs.lo, hi: elements added before and after, one per dimension; bits: their value
extern const Op op_concatenate;  // attrs.dims[0]
// ---- the others
extern const Op op_reduce;  // attrs.reducer over attrs.dims, which disappear
extern const Op op_dot;  // attrs.letters: each letter in at least two of the three terms, none twice in one
extern const Op
    op_take;  // table [b..,v,d..], indices [b..,n..] -> [b..,n..,d..]; lo = {rank of b}, hi = {rank of n}; rows outside: 0
extern const Op
    op_scatter;  // indices [b..,n..], updates [b..,n..,d..] -> [b..,v,d..]: zeros with rows added; shape = {v}
extern const Op op_sort;  // all operands along attrs.dims[0], by the first, stable
extern const Op
    op_constraint;  // attrs.sharding; lo = {leading dimensions that it does not concern}; hi: dimensions that are open
extern const Op
    op_beside;  // operand 0 on the devices of operand 1: another move than those that programs make, see structure_ops.cpp
extern const Op op_call;  // attrs.graphs[0] on the operands
extern const Op op_roll;  // attrs.lo: how far every dimension is shifted, from 0 to its size - 1
extern const Op
    op_permute_rows;  // row k of dimension attrs.dims[0] is the operand's row attrs.lo[k]; -1: zeros; no row twice
// ---- over the rows of the maps attrs.axes; attrs.lo, hi: the positions of the groups in a list, and their sizes
extern const Op op_psum, op_pmax, op_pmin;
extern const Op op_all_gather;      // attrs.dims[0]: the new dimension of the result
extern const Op op_reduce_scatter;  // attrs.dims[0]: the operand's dimension that goes
extern const Op
    op_all_to_all;  // dims[0]: the operand's dimension that goes, dims[1]: the new one of the result
extern const Op
    op_ppermute;  // row attrs.lo[k] goes to attrs.hi[k]; dims: those of axes that are bound already
extern const Op op_pbroadcast;  // the value of row attrs.lo[0]
extern const Op op_axis_index;  // the position along attrs.axes[0], int32
extern const Op op_host_call;   // attrs.host with the operands' values; the result is nothing
extern const Op
    op_place;  // dimension attrs.dims[k] lies on device axis attrs.axes[k], innermost first; 0: none does

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
namespace prim {

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
/// The same array when dtype and weakness are there already. Literals are converted at once.
Array cast(const Array& x, DType t, bool weak = false);

/// `value`, of the shape of `model`, where `model` is.
Array placed_like(const Array& value, const Array& model);

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
/// The inverse of slice: zeros of `shape` with x at lo, lo + step, ...
Array embed(const Array& x, const Shape& lo, const Shape& step, const Shape& shape);

/// dims: non-negative, increasing; they disappear.
Array reduce(Reducer r, const Array& x, const Shape& dims);
/// Puts dimensions of size n back that `reduce` removed.
Array expand_reduced(const Array& x, const Shape& shape, const Shape& dims);
Array dot(const std::string& letters, const Array& a, const Array& b);
Array take(const Array& table, const Array& index, std::int64_t batch_rank, std::int64_t index_rank);
Array scatter(const Array& index, const Array& updates, std::int64_t batch_rank, std::int64_t index_rank,
              std::int64_t rows);
/// out[.., i, ..] = x[.., index[.., i, ..], ..] along `dim`; index may be shorter or longer there.
Array take_along(const Array& x, const Array& index, std::size_t dim);
Arrays sort(std::span<const Array> operands, std::size_t dim);
Array iota(const Shape& shape, std::size_t dim, DType t);

}  // namespace prim
}  // namespace shardarray
