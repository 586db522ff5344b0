#include "cuda/half_casts.h"

#include <algorithm>
#include <array>

#include "runtime/half_floats.h"

namespace shardarray::cuda {
namespace {

/// A cast as kernel IR expresses it.
struct Spelled {
  DType half;
  bool widens;
  Kernel kernel;
  std::int32_t result;

  Spelled(DType t, bool wide) : half(t), widens(wide) {
    KernelBuilder b(1, 0);
    b.begin_stage(false);
    const int x = b.load(b.arg({wide ? DType::uint16 : DType::float32}));
    const int y = wide ? widen(b, x, t) : narrow(b, x, t);
    b.store(b.arg({b.type(y), true}), y);
    kernel = b.finish();
    result = kernel.code.back().a;
  }
  /// The cast's operand if the kernel's value v is this cast; -1: it is not.
  std::int32_t operand_of(const Kernel& k, std::int32_t v) const {
    std::int32_t operand = -1;
    return matches(k, result, v, operand) ? operand : -1;
  }

 private:
  bool matches(const Kernel& k, std::int32_t mine, std::int32_t v, std::int32_t& operand) const {
    const Instr &a = kernel.code[static_cast<std::size_t>(mine)], &b = k.code[static_cast<std::size_t>(v)];
    if (a.type != b.type) return false;
    if (a.code == Code::load) {
      if (operand < 0) operand = v;
      return operand == v;
    }
    if (a.code != b.code || a.imm != b.imm) return false;
    const int count = operand_count(a.code, a.imm);
    return (count < 1 || matches(k, a.a, b.a, operand)) && (count < 2 || matches(k, a.b, b.b, operand)) &&
           (count < 3 || matches(k, a.c, b.c, operand));
  }
};
const std::array<Spelled, 4>& spelled_casts() {
  static const std::array<Spelled, 4> all = {Spelled(float16, true), Spelled(float16, false),
                                             Spelled(bfloat16, true), Spelled(bfloat16, false)};
  return all;
}

}  // namespace

/// v by itself.
HalfCasts::Cast HalfCasts::spelled(const Kernel& k, std::int32_t v) {
  for (const Spelled& s : spelled_casts()) {
    const std::int32_t operand = s.operand_of(k, v);
    if (operand >= 0) return {s.half, s.widens ? Kind::widens : Kind::narrows, operand};
  }
  return {};
}

/// v combined with the casts that it consists of.
HalfCasts::Cast HalfCasts::joined(const Kernel& k, std::int32_t v) {
  const Cast own = spelled(k, v);
  if (own.operand < 0) return own;
  const Cast from = spelled(k, own.operand);
  if (from.operand < 0 || from.half != own.half || from.kind == own.kind) return own;
  if (own.kind == Kind::widens) return {own.half, Kind::rounds, from.operand};
  // Narrowing again would turn other bits of a NaN into the canonical ones.
  const Cast first = spelled(k, from.operand);
  const bool narrowed = first.operand >= 0 && first.half == own.half && first.kind == Kind::narrows;
  return narrowed ? Cast{own.half, Kind::repeats, from.operand} : own;
}

HalfCasts::HalfCasts(const Kernel& k) : casts_(k.code.size()), needed_(k.code.size()) {
  const bool has_halves =
      std::any_of(k.code.begin(), k.code.end(), [](const Instr& in) { return in.type == uint16; });
  for (std::size_t v = k.code.size(); v-- > 0;) {
    const Instr& in = k.code[v];
    needed_[v] = needed_[v] || in.code == Code::store || in.code == Code::reduce;
    if (!needed_[v]) continue;
    if (has_halves) casts_[v] = joined(k, static_cast<std::int32_t>(v));
    if (is_cast(v)) {
      needed_[static_cast<std::size_t>(casts_[v].operand)] = true;
      continue;
    }
    const int count = operand_count(in.code, in.imm);
    const std::int32_t operands[] = {in.a, in.b, in.c};
    for (int n = 0; n < count; n++) needed_[static_cast<std::size_t>(operands[n])] = true;
  }
}

}  // namespace shardarray::cuda
