// Shared by op definitions: types, linearity, ops without derivative, single-instruction scalar expressions.
#pragma once
#include "ops/record.h"
#include "runtime/expand.h"

namespace shardarray {
extern const Op op_inverse_power;  // x^-n, n = attrs.lo[0] > 0
}

namespace shardarray::rules {

/// Completes the definition of an elementwise op.
constexpr Op elementwise(Op op) {
  op.form = Form::scalar;
  op.rule = pointwise_rule;
  return op;
}

/// The common type of all operands, which have one shape and dtype; weak if all are.
Types same_type(const Call& c);
/// bool of the same shape.
Types bool_type(const Call& c);

inline Linear joint(const Call&, int) { return Linear::joint; }
inline Linear joint_sum(const Call& c, int) {
  return c.attrs->reducer == Reducer::sum ? Linear::joint : Linear::no;
}
/// For products: integers wrap and are linear, floats round.
inline Linear each_of_product(const Call& c, int) {
  return is_integer(c.in[0].dtype) || c.summands_asked ? Linear::each : Linear::no;
}
/// Whether operand k is a literal +-2^exponent.
bool is_power_of_two(const Call& c, int k, int& exponent);

/// Calls the kernel `name` on the local tiles of all operands.
LocalCall library_call(const LowerArgs& l, const char* name, std::vector<std::int64_t> params);
/// For ops that are constant almost everywhere.
Arrays no_tangent(const JvpArgs& v);
/// t * factor, for unary ops.
inline Arrays scaled(const JvpArgs& v, const Array& factor) {
  return {primitive::mul(v.tangents[0], factor)};
}

template <Code code> void emit_unary(ScalarArgs& s) { s.out[0] = s.b.unary(code, s.in[0]); }
template <Code code> void emit_binary(ScalarArgs& s) { s.out[0] = s.b.binary(code, s.in[0], s.in[1]); }
template <int (*function)(KernelBuilder&, int)> void emit_function(ScalarArgs& s) {
  s.out[0] = function(s.b, s.in[0]);
}

/// Dimension d (negative) of a shape of this rank, as a non-negative number.
inline std::size_t from_first(std::int64_t d, std::size_t rank) {
  return static_cast<std::size_t>(d + static_cast<std::int64_t>(rank));
}
inline std::int64_t from_last(std::size_t d, std::size_t rank) {
  return static_cast<std::int64_t>(d) - static_cast<std::int64_t>(rank);
}
/// 0, 1, .. n - 1.
Shape dims_of_rank(std::size_t n);
/// The permutation that undoes `p`.
Shape inverse(const Shape& p);
/// Adds a first entry.
Shape prepend(std::int64_t v, const Shape& s);
/// Operand k with a leading dimension, mapped or not.
Array with_rows(const BatchArgs& b, std::size_t k);
/// x with rows, placed on the devices of `axis` if that has devices.
Array with_placed_rows(const Array& x, bool mapped, const std::shared_ptr<const Axis>& axis);
/// All results are mapped.
Batched mapped(Arrays out);

/// Appends a factor; returns the factors of a dimension that consists of it.
DimFactors add_factor(Rule& r, std::int64_t size, Role role = Role::pass, Reducer reducer = Reducer::none);
/// A separate factor for each dimension of t.
std::vector<DimFactors> own_factors(Rule& r, const Type& t, Role role);
/// For ops that call graphs: operands and results must not be sharded by the op; the graphs' own ops decide.
Rule whole_rule(const Call& c, const Types& results);
/// Appends a factor for a dimension that c sums over: sharding it leaves a partial result; with attrs.uncut it must not be sharded.
DimFactors add_summed(Rule& r, const Call& c, std::int64_t size, Reducer reducer);

}  // namespace shardarray::rules
