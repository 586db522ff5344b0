#include "cuda/run_values.h"

#include <algorithm>

namespace shardarray::cuda {
namespace {

using Move = LoopShape::Move;

/// The largest power of two known to divide an integer of the type.
std::uint64_t top_bit(DType t) { return std::uint64_t{1} << (itemsize(t) * 8 - 1); }
std::uint64_t lowest_bit(std::uint64_t x) { return x & (~x + 1); }
std::uint64_t unit_of(DType t, std::uint64_t x) {
  const std::uint64_t low = lowest_bit(x);
  return low == 0 ? top_bit(t) : std::min(low, top_bit(t));
}

}  // namespace

RunValues::RunValues(const Kernel& k, const LoopShape& shape, const LoopOperands& operands,
                     const HalfCasts& halves, std::uint32_t run)
    : k_(k), shape_(shape), operands_(operands), halves_(halves), run_(run), values_(k.code.size()) {
  if (run == 1) return;
  for (std::size_t v = 0; v < values_.size(); v++) values_[v] = value_of(v);
}

RunValues::Value RunValues::value_of(std::size_t v) const {
  const Instr& in = k_.code[v];
  const auto moves = [&](std::size_t operand) {
    return shape_.move(operand, shape_.outer_axes - 1) != Move::none;
  };
  if (in.code == Code::index) return index(operands_.number_of_index(in.imm));
  Value x;
  if (!halves_.is_cast(v)) {
    if (in.code == Code::constant && is_integer(in.type))
      return made(in, unit_of(in.type, in.imm), [](std::uint32_t) { return 0; });
    x = in.code == Code::cast ? cast(in) : calculated(in);
  }
  if (x.unit != 0) return x;
  x = of_operands(v);
  if ((in.code == Code::load || in.code == Code::load_at) && moves(in.imm)) x.group = 1;
  x.unit = is_integer(in.type) && x.group == run_ ? 1 : 0;
  return x;
}

RunValues::Value RunValues::index(std::size_t operand) const {
  const std::uint32_t last = shape_.outer_axes - 1;
  Value x;
  if (shape_.move(operand, last) == Move::none) {
    x.group = run_;
    x.unit = 1;
    return x;
  }
  bool only = shape_.move(operand, last) == Move::one;
  for (std::uint32_t axis = 0; axis < shape_.axes; axis++)
    only = only && (axis == last || shape_.move(operand, axis) == Move::none);
  if (!only || shape_.index_unit % run_ != 0) return x;
  x.unit = run_;
  for (std::uint32_t k = 0; k < run_; k++) x.low[k] = k;
  return x;
}

RunValues::Value RunValues::of_operands(std::size_t v) const {
  Value x;
  x.group = run_;
  if (halves_.is_cast(v)) {
    x.group = values_[static_cast<std::size_t>(halves_.of(v).operand)].group;
    return x;
  }
  const Instr& in = k_.code[v];
  const std::int32_t operands[] = {in.a, in.b, in.c};
  for (int n = 0; n < operand_count(in.code, in.imm); n++)
    x.group = std::min(x.group, values_[static_cast<std::size_t>(operands[n])].group);
  return x;
}

/// Unit 0 if a low number reaches it.
template <class Low>
RunValues::Value RunValues::made(const Instr& in, std::uint64_t unit, const Low& low) const {
  Value x;
  x.unit = std::min(unit, top_bit(in.type));
  x.group = run_;
  for (std::uint32_t k = 0; k < run_; k++) {
    x.low[k] = low(k);
    if (x.low[k] >= x.unit) return {};
  }
  for (std::uint32_t k = 1; k < run_; k++)
    if (x.low[k] != x.low[k - 1]) x.group = std::min<std::uint32_t>(x.group, k & (~k + 1));
  return x;
}

/// Low bits are unchanged; truncation drops high ones.
RunValues::Value RunValues::cast(const Instr& in) const {
  const Value& a = values_[static_cast<std::size_t>(in.a)];
  if (a.unit == 0 || !is_integer(in.type)) return {};
  Value x = made(in, a.unit, [&](std::uint32_t k) { return a.low[k]; });
  x.known = a.known && x.unit != 0;
  return x;
}

const std::uint64_t* RunValues::constant(std::int32_t v) const {
  const Instr& in = k_.code[static_cast<std::size_t>(v)];
  return in.code == Code::constant && is_integer(in.type) ? &in.imm : nullptr;
}

RunValues::Value RunValues::calculated(const Instr& in) const {
  if (!is_integer(in.type) || operand_count(in.code, in.imm) != 2) return {};
  const Value &a = values_[static_cast<std::size_t>(in.a)], &b = values_[static_cast<std::size_t>(in.b)];
  if (a.unit == 0 || b.unit == 0) return {};
  if (in.code == Code::add)
    return made(in, std::min(a.unit, b.unit), [&](std::uint32_t k) { return a.low[k] + b.low[k]; });
  const std::uint64_t* const c = constant(in.b);
  if (c == nullptr) return {};
  const std::uint64_t width = itemsize(in.type) * 8;
  switch (in.code) {
    case Code::mul: {
      const std::uint64_t factor = unit_of(in.type, *c), most = top_bit(in.type);
      return made(in, a.unit < most / factor ? a.unit * factor : most,
                  [&](std::uint32_t k) { return a.low[k] * *c; });
    }
    case Code::and_: {
      Value x =
          made(in, std::max(a.unit, unit_of(in.type, *c)), [&](std::uint32_t k) { return a.low[k] & *c; });
      x.known = *c < a.unit;
      return x;
    }
    case Code::shr:
      if (*c >= width) return {};
      return made(in, std::max<std::uint64_t>(a.unit >> *c, 1),
                  [&](std::uint32_t k) { return a.low[k] >> *c; });
    default: return {};
  }
}

}  // namespace shardarray::cuda
