#include "runtime/evaluate_instruction.h"

#include <limits>

#include "runtime/instruction_bits.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

[[noreturn]] void undefined(const char* what) {
  throw InternalError(std::string("evaluate: ") + what +
                      " is not defined for this type. The rules stand in kernel.h. Verify the kernel first.");
}

void need_value(DType t) {
  if (t != bool_ && !is_integer(t) && t != float32 && t != float64) undefined("a kernel value");
}

/// Whether kernel.h defines an instruction with operands for this operand type.
bool is_defined(Code code, DType t) {
  switch (code) {
    case Code::not_:
    case Code::and_:
    case Code::or_:
    case Code::xor_: return !is_floating(t);
    case Code::shl:
    case Code::shr: return is_integer(t);
    case Code::sqrt:
    case Code::floor:
    case Code::ceil:
    case Code::round:
    case Code::trunc:
    case Code::fma: return is_floating(t);
    case Code::neg:
    case Code::abs:
    case Code::add:
    case Code::sub:
    case Code::mul:
    case Code::div:
    case Code::rem:
    case Code::min:
    case Code::max: return t != bool_;
    case Code::cast: return true;
    default: return code >= Code::eq && code <= Code::ge;
  }
}

}  // namespace

std::uint64_t evaluate_instruction(const Instr& in, DType operand, std::uint64_t a, std::uint64_t b,
                                   std::uint64_t c) {
  if (in.code == Code::constant) return in.imm;
  if (in.code == Code::call)
    return scalar::pack(scalar::call_function(static_cast<Function>(in.imm), scalar::value_of<double>(a),
                                              scalar::value_of<double>(b)));
  if (in.code != Code::bitcast && in.code != Code::select) {
    need_value(operand);
    if (in.code == Code::cast) need_value(in.type);
    if (!is_defined(in.code, operand)) undefined(name(in.code));
  }
  return scalar::evaluate_bits(in.code, in.type, operand, a, b, c);
}

std::uint64_t bits_of(DType type, double value) {
  need_value(type);
  return scalar::evaluate_bits(Code::cast, type, float64, scalar::pack(value), 0, 0);
}

std::uint64_t identity_bits(Reducer r, DType type) {
  // Infinities saturate to the integers' minimum and maximum.
  constexpr double infinity = std::numeric_limits<double>::infinity();
  switch (r) {
    case Reducer::prod:
    case Reducer::all: return bits_of(type, 1);
    case Reducer::max: return bits_of(type, -infinity);
    case Reducer::min: return bits_of(type, infinity);
    default: return 0;
  }
}

Code combining_code(Reducer r) {
  switch (r) {
    case Reducer::prod: return Code::mul;
    case Reducer::max: return Code::max;
    case Reducer::min: return Code::min;
    case Reducer::any: return Code::or_;
    case Reducer::all: return Code::and_;
    default: return Code::add;
  }
}

}  // namespace shardarray
