// ShardedArray's literals, operators and shorthands.
#include <bit>
#include <limits>

#include "ops/prims.h"
#include "shardarray/ops.h"

namespace shardarray {

// ---------------------------------------------------------------- literals
Array ShardedArray::literal(double value, DType t, bool weak, Where w) {
  Attrs a;
  a.dtype = t;
  a.bits = prim::bits_of(t, value);
  if (weak) a.dims = {1};
  if (weak && is_floating(t)) a.hi = {std::bit_cast<std::int64_t>(value)};  // for a float64 partner
  return record(op_constant, {}, std::move(a), w);
}
// One that int32 cannot hold is a weak int64, or uint64.
Array ShardedArray::literal_int(std::int64_t value, Where w) {
  const Site site(w);
  using Limits = std::numeric_limits<std::int32_t>;
  const DType t = value < Limits::min() || value > Limits::max() ? DType::int64 : DType::int32;
  return prim::constant(t, prim::bits_of(t, value), true);
}

Array ShardedArray::literal_uint(std::uint64_t value, Where w) {
  if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return literal_int(static_cast<std::int64_t>(value), w);
  const Site site(w);
  return prim::constant(DType::uint64, value, true);
}

// ---------------------------------------------------------------- operators
Array operator+(const Operand& a, const Operand& b) { return add(a.array, b.array, a.where); }
Array operator-(const Operand& a, const Operand& b) { return subtract(a.array, b.array, a.where); }
Array operator*(const Operand& a, const Operand& b) { return multiply(a.array, b.array, a.where); }
Array operator/(const Operand& a, const Operand& b) { return divide(a.array, b.array, a.where); }
Array operator%(const Operand& a, const Operand& b) { return remainder(a.array, b.array, a.where); }
Array operator-(const Operand& a) { return negative(a.array, a.where); }
Array operator~(const Operand& a) { return bitwise_not(a.array, a.where); }
Array operator!(const Array& a) { return logical_not(a, {}); }
Array operator&(const Operand& a, const Operand& b) { return bitwise_and(a.array, b.array, a.where); }
Array operator|(const Operand& a, const Operand& b) { return bitwise_or(a.array, b.array, a.where); }
Array operator^(const Operand& a, const Operand& b) { return bitwise_xor(a.array, b.array, a.where); }
Array operator<<(const Operand& a, const Operand& b) { return left_shift(a.array, b.array, a.where); }
Array operator>>(const Operand& a, const Operand& b) { return right_shift(a.array, b.array, a.where); }
Array operator==(const Operand& a, const Operand& b) { return equal(a.array, b.array, a.where); }
Array operator!=(const Operand& a, const Operand& b) { return not_equal(a.array, b.array, a.where); }
Array operator<(const Operand& a, const Operand& b) { return less(a.array, b.array, a.where); }
Array operator<=(const Operand& a, const Operand& b) { return less_equal(a.array, b.array, a.where); }
Array operator>(const Operand& a, const Operand& b) { return greater(a.array, b.array, a.where); }
Array operator>=(const Operand& a, const Operand& b) { return greater_equal(a.array, b.array, a.where); }

// ---------------------------------------------------------------- shorthands
Array ShardedArray::astype(DType t, Where w) const { return shardarray::astype(*this, t, w); }
Array ShardedArray::reshape(const Shape& s, Where w) const { return shardarray::reshape(*this, s, w); }
Array ShardedArray::transpose(const Shape& perm, Where w) const {
  return shardarray::transpose(*this, perm, w);
}
Array ShardedArray::sum(const ReduceOptions& o, Where w) const { return shardarray::sum(*this, o, w); }
Array ShardedArray::mean(const ReduceOptions& o, Where w) const { return shardarray::mean(*this, o, w); }
Array ShardedArray::max(const ReduceOptions& o, Where w) const { return shardarray::max(*this, o, w); }
Array ShardedArray::min(const ReduceOptions& o, Where w) const { return shardarray::min(*this, o, w); }
Array ShardedArray::prod(const ReduceOptions& o, Where w) const { return shardarray::prod(*this, o, w); }
Array ShardedArray::any(const ReduceOptions& o, Where w) const { return shardarray::any(*this, o, w); }
Array ShardedArray::all(const ReduceOptions& o, Where w) const { return shardarray::all(*this, o, w); }

}  // namespace shardarray
