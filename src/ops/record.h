// How code below the public functions records ops: operands already have equal shapes and dtypes, dimensions in `Attrs` count from the last
// one (-1). Lines come from the open Site.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>

#include "graph/op.h"

namespace shardarray {

// Ops that other files record or test for; their definitions say which attributes they use.
extern const Op op_add, op_sub, op_mul, op_div, op_rem, op_min, op_max, op_neg, op_abs, op_sign, op_fma,
    op_floor, op_trunc, op_round, op_exp, op_exp2, op_expm1, op_log, op_log1p, op_sqrt, op_rsqrt, op_pow,
    op_sin, op_cos, op_tan, op_cosh, op_sinh, op_tanh, op_atan2, op_hypot, op_asinh, op_atanh, op_erfc,
    op_erf_inv, op_logistic, op_logaddexp, op_eq, op_ne, op_lt, op_le, op_gt, op_ge, op_not, op_is_finite,
    op_and, op_or, op_xor, op_shl, op_shr, op_where, op_cast, op_bitcast, op_stop_gradient, op_slope_of,
    op_like, op_threefry, op_philox, op_iota;
extern const Op op_broadcast, op_reshape, op_transpose, op_slice, op_reverse, op_pad, op_concatenate, op_roll,
    op_permute_rows, op_reduce, op_scan, op_dot, op_take, op_scatter, op_update, op_update_rows, op_sort,
    op_triangular_solve, op_lu_solve, op_constraint, op_beside, op_call, op_iterate, op_host_call, op_behind,
    op_custom, op_custom_linear, op_choose, op_repeat;
extern const Op op_psum, op_pmax, op_pmin, op_all_gather, op_reduce_scatter, op_all_to_all, op_ppermute,
    op_pbroadcast, op_axis_index, op_place;

/// Zeros, ones of a type.
Array zeros_of(const Type& t);
Array one_of(const Type& t);
/// Adds a leading dimension of `size` equal rows.
Array add_leading(const Array& x, std::int64_t size);
/// `x`, whose first dimension holds the rows of `axis`, with one row per device; unchanged if `axis` is not a device axis.
Array place_rows(const Array& x, const std::shared_ptr<const Axis>& axis);
/// `x`, replicated on every device of `axis`.
Array place_whole(const Array& x, const std::shared_ptr<const Axis>& axis);
/// a + b, where an absent operand is zero; absent if both are.
Array add_or(const Array& a, const Array& b);

/// Recording helpers, named like the ops; in a namespace of their own because the public function objects have the same names.
namespace primitive {

/// The bits of `v` as `t`, in the low bytes: floats are rounded to nearest, integers truncated and saturated (from integers: wrapped).
std::uint64_t bits_of(DType t, double v);
std::uint64_t bits_of(DType t, std::int64_t v);
std::uint64_t bits_of(DType t, std::uint64_t v);
Array constant(DType t, std::uint64_t bits, bool weak);
/// Whether x is an integer literal that fits into int64; returns its value.
bool is_literal_int(const Array& x, std::int64_t& value);
/// `v` in the shape and dtype of `x`; weak, so that the other operand alone determines weakness.
Array like(const Array& x, double v);
Array full(const Shape& shape, DType t, double v);
/// The same for an integer, exact in integer dtypes.
Array like_whole(const Array& x, std::int64_t v);
/// Whether t can represent the integer v. `is_large`: v is above 2^63 - 1 and given by its bits. Floating dtypes round and bool tests for
/// 0: they accept all.
bool is_value(DType t, std::int64_t v, bool is_large);
/// Throws DTypeError, in the name of the running function, if x is an integer literal that t cannot represent.
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
/// `value` with the derivatives of `line`, whose value is never computed.
Array with_slope_of(const Array& value, const Array& line);
/// Returns x itself if dtype and weakness already match. Literals are converted immediately.
Array cast(const Array& x, DType t, bool weak = false);
/// The same bits as a dtype of equal width.
Array bitcast(const Array& x, DType t);

/// `value`, which has the shape of `model`, placed like `model`.
Array placed_like(const Array& value, const Array& model);
/// x on the devices of `partner`.
Array beside(const Array& x, const Array& partner);
/// x, but its readers are not computed before `others`; never merged with another node.
Array behind(const Array& x, std::span<const Array> others);
/// Calls g on these operands. The results of a checkpoint are recomputed for its derivatives.
Arrays call(Graph g, std::span<const Array> operands, bool is_checkpoint = false);

/// `dims` count from the last dimension of `shape`.
Array broadcast(const Array& x, const Shape& shape, const Shape& dims);
/// numpy's broadcasting, aligned at the last dimension.
Array broadcast_to(const Array& x, const Shape& shape);
Array reshape(const Array& x, const Shape& shape);
/// perm: non-negative operand dimensions.
Array transpose(const Array& x, const Shape& perm);
Array slice(const Array& x, const Shape& lo, const Shape& hi, const Shape& step = {});
/// Elements lo..hi of dimension `dim` (non-negative).
Array slice_dim(const Array& x, std::size_t dim, std::int64_t lo, std::int64_t hi);
Array reverse(const Array& x, const Shape& dims);
/// shift: one entry per dimension, in 0 .. size - 1.
Array roll(const Array& x, const Shape& shift);
Array pad(const Array& x, const Shape& lo, const Shape& hi, std::uint64_t bits = 0);
Array concatenate(std::span<const Array> parts, std::size_t dim);
/// Element k of a vector, broadcast to `shape`.
Array element(const Array& vector, std::int64_t k, const Shape& shape);
/// The inverse of slice: zeros of `shape` with x at lo, lo + step, ...
Array embed(const Array& x, const Shape& lo, const Shape& step, const Shape& shape);

/// dims: non-negative, increasing; they are removed.
Array reduce(Reducer r, const Array& x, const Shape& dims);
/// Restores the dimensions that `reduce` removed, by broadcasting.
Array expand_reduced(const Array& x, const Shape& shape, const Shape& dims);
Array dot(const std::string& letters, const Array& a, const Array& b);
/// x without a derivative: differentiating throws Error in the name of `function`.
Array underived(const Array& x, const char* function);
Array take(const Array& table, const Array& index, std::int64_t batch_rank, std::int64_t index_rank);
/// Rows start at the reducer's identity and are combined with the updates: sum, prod, max or min.
Array scatter(const Array& index, const Array& updates, std::int64_t batch_rank, std::int64_t index_rank,
              std::int64_t rows, Reducer reducer = Reducer::sum);
/// The scalar that z is, or that is broadcast to z, if known. Always real: complex numbers are joined from two.
Array number_in(const Array& z);
struct UpdateOptions {
  Reducer reducer = Reducer::none;  ///< combines the part with the old values: sum, prod, max, min
  std::int64_t batch_rank = 0;
};
/// x [b.., n..] overwritten by a part [b.., m..] that begins in `dims` at `starts` [b..] (int32 or int64; shorter ones are cast); in other
/// dimensions m is n. What lies outside of x is ignored.
Array update(const Array& x, const Array& part, const Shape& dims, std::span<const Array> starts,
             const UpdateOptions& options = {});
/// x [b.., v, d..], whose rows at these numbers [b.., n] are overwritten by the updates [b.., n, d..] or combined with them, in the order of
/// n. Rows outside of x are ignored.
Array update_rows(const Array& x, const Array& rows, const Array& updates, const UpdateOptions& options = {});
/// The part of x of these sizes at these starts; zeros outside of x.
Array part_at(const Array& x, const Shape& sizes, const Shape& dims, std::span<const Array> starts);
/// out[.., i, ..] = x[.., index[.., i, ..], ..] along `dim`; index may have another length there.
Array take_along(const Array& x, const Array& index, std::size_t dim);
Arrays sort(std::span<const Array> operands, std::size_t dim);
Array iota(const Shape& shape, std::size_t dim, DType t);

}  // namespace primitive
}  // namespace shardarray
