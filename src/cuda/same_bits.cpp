#include "cuda/same_bits.h"

#include <cmath>

#include "runtime/scalar.h"

namespace shardarray::cuda {
namespace {

float float_of(const Instr& constant) {
  return scalar::from_bits<float>(static_cast<std::uint32_t>(constant.imm));
}

}  // namespace

const char* limited_by(const Kernel& k, const Instr& in) {
  const auto at = [&](std::int32_t v) -> const Instr& { return k.code[static_cast<std::size_t>(v)]; };
  const Instr &condition = at(in.a), &bound = at(in.b);
  const bool less = condition.code == Code::lt;
  if (in.type != float32 || (!less && condition.code != Code::gt)) return nullptr;
  if (bound.code != Code::constant || condition.a != in.c || condition.b != in.b) return nullptr;
  if (!(std::abs(float_of(bound)) > 0)) return nullptr;  // a comparison takes -0 and +0 as equal
  return less ? "max" : "min";
}

std::int32_t added_to_one(const Kernel& k, const Instr& in) {
  const auto at = [&](std::int32_t v) -> const Instr& { return k.code[static_cast<std::size_t>(v)]; };
  const auto number = [&](std::int32_t v) { return at(v).code == Code::constant ? float_of(at(v)) : 0; };
  const auto near_one = [&](std::int32_t v) {
    int exponent = 0;
    return std::frexp(number(v), &exponent) == 0.5 && std::abs(exponent) <= 8;
  };
  const Instr& sum = at(in.b);
  if (sum.code != Code::add) return -1;
  const std::int32_t y = near_one(sum.b) ? sum.a : near_one(sum.a) ? sum.b : -1;
  const auto fits = [&](std::int32_t v) { return v == y || near_one(v); };
  const Instr& top = at(in.a);
  const bool all = fits(in.a) || (top.code == Code::select && fits(top.b) && fits(top.c));
  return all ? y : -1;
}

}  // namespace shardarray::cuda
