#include "cpu/codegen/llvm/values.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>

#include <cmath>

#include "shardarray/error.h"

namespace shardarray::codegen {
namespace {

using llvm::Intrinsic::ID;
namespace intrinsic = llvm::Intrinsic;

llvm::Constant* integer(llvm::Value* like, std::uint64_t x) {
  return llvm::ConstantInt::get(like->getType(), x, true);
}

llvm::Value* unary(llvm::IRBuilder<>& b, ID id, llvm::Value* x) { return b.CreateUnaryIntrinsic(id, x); }
llvm::Value* binary(llvm::IRBuilder<>& b, ID id, llvm::Value* x, llvm::Value* y) {
  return b.CreateBinaryIntrinsic(id, x, y);
}

bool is_zero_or_unknown(llvm::Value* v) {
  auto* const c = llvm::dyn_cast<llvm::Constant>(v);
  const llvm::Constant* const one = c && c->getType()->isVectorTy() ? c->getSplatValue() : c;
  const auto* const f = llvm::dyn_cast_or_null<llvm::ConstantFP>(one);
  return !f || f->isZero() || f->isNaN();
}

/// As in scalar.h: the canonical NaN; handles zeros of different signs.
llvm::Value* float_extreme(llvm::IRBuilder<>& b, bool max, DType t, llvm::Value* x, llvm::Value* y) {
  llvm::Type* const type = x->getType();
  const auto pick = [&](llvm::Value* p, llvm::Value* q) {
    return b.CreateSelect(max ? b.CreateFCmpOGT(p, q) : b.CreateFCmpOLT(p, q), p, q);
  };
  llvm::Constant* const nan = llvm::ConstantFP::getQNaN(type);
  // Equal values can differ only as zeros.
  if (!is_zero_or_unknown(x) || !is_zero_or_unknown(y))
    return b.CreateSelect(b.CreateFCmpUNO(x, y), nan, pick(x, y));
  llvm::Type* const bits = type->getWithNewType(b.getIntNTy(static_cast<unsigned>(8 * itemsize(t))));
  llvm::Value* const p = b.CreateBitCast(pick(x, y), bits);
  llvm::Value* const q = b.CreateBitCast(pick(y, x), bits);
  llvm::Value* const both = b.CreateBitCast(max ? b.CreateAnd(p, q) : b.CreateOr(p, q), type);
  return b.CreateSelect(b.CreateFCmpUNO(x, y), nan, both);
}

llvm::Value* integer_extreme(llvm::IRBuilder<>& b, bool max, DType t, llvm::Value* x, llvm::Value* y) {
  if (is_unsigned_integer(t)) return binary(b, max ? intrinsic::umax : intrinsic::umin, x, y);
  return binary(b, max ? intrinsic::smax : intrinsic::smin, x, y);
}

/// x / 0 = -1, x % 0 = x; the lowest value / -1 wraps. The machine's division sees neither case.
llvm::Value* integer_division(llvm::IRBuilder<>& b, bool rem, DType t, llvm::Value* x, llvm::Value* y) {
  llvm::Value* const zero = b.CreateICmpEQ(y, integer(y, 0));
  if (is_unsigned_integer(t)) {
    llvm::Value* const by = b.CreateSelect(zero, integer(y, 1), y);
    llvm::Value* const q = rem ? b.CreateURem(x, by) : b.CreateUDiv(x, by);
    return b.CreateSelect(zero, rem ? x : llvm::Constant::getAllOnesValue(y->getType()), q);
  }
  llvm::Constant* const minus_one = llvm::Constant::getAllOnesValue(y->getType());
  llvm::Value* const negates = b.CreateICmpEQ(y, minus_one);
  llvm::Value* const by = b.CreateSelect(b.CreateOr(zero, negates), integer(y, 1), y);
  llvm::Value* q = rem ? b.CreateSRem(x, by) : b.CreateSDiv(x, by);
  q = b.CreateSelect(negates, rem ? integer(y, 0) : b.CreateNeg(x), q);
  return b.CreateSelect(zero, rem ? x : minus_one, q);
}

/// Amounts are unsigned; amounts beyond the width shift everything out.
llvm::Value* shift(llvm::IRBuilder<>& b, bool left, DType t, llvm::Value* x, llvm::Value* amount) {
  llvm::Constant* const most = integer(x, 8 * itemsize(t) - 1);
  llvm::Value* const inside = binary(b, intrinsic::umin, amount, most);
  if (!left && is_signed_integer(t)) return b.CreateAShr(x, inside);
  llvm::Value* const y = left ? b.CreateShl(x, inside) : b.CreateLShr(x, inside);
  return b.CreateSelect(b.CreateICmpULE(amount, most), y, integer(x, 0));
}

llvm::Value* compare(llvm::IRBuilder<>& b, Code code, DType t, llvm::Value* x, llvm::Value* y) {
  using P = llvm::CmpInst;
  const int k = static_cast<int>(code) - static_cast<int>(Code::eq);
  constexpr P::Predicate of_floats[] = {P::FCMP_OEQ, P::FCMP_UNE, P::FCMP_OLT,
                                        P::FCMP_OLE, P::FCMP_OGT, P::FCMP_OGE};
  constexpr P::Predicate of_signed[] = {P::ICMP_EQ,  P::ICMP_NE,  P::ICMP_SLT,
                                        P::ICMP_SLE, P::ICMP_SGT, P::ICMP_SGE};
  constexpr P::Predicate of_unsigned[] = {P::ICMP_EQ,  P::ICMP_NE,  P::ICMP_ULT,
                                          P::ICMP_ULE, P::ICMP_UGT, P::ICMP_UGE};
  if (is_floating(t)) return b.CreateFCmp(of_floats[k], x, y);
  return b.CreateICmp(is_signed_integer(t) ? of_signed[k] : of_unsigned[k], x, y);
}

/// Saturating; LLVM's own intrinsic would be scalarized.
llvm::Value* float_to_integer(llvm::IRBuilder<>& b, DType to, llvm::Type* type, llvm::Value* x, bool fits) {
  llvm::Constant* const zero = llvm::Constant::getNullValue(x->getType());
  if (fits && to == int32) return b.CreateFPToSI(b.CreateSelect(b.CreateFCmpORD(x, x), x, zero), type);
  const unsigned bits = type->getScalarSizeInBits();
  const bool is_signed = is_signed_integer(to);
  const llvm::APInt least = is_signed ? llvm::APInt::getSignedMinValue(bits) : llvm::APInt(bits, 0);
  const llvm::APInt most = is_signed ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getMaxValue(bits);
  const double past =
      std::ldexp(1.0, static_cast<int>(bits) - (is_signed ? 1 : 0));  // exact: the first value out of range
  llvm::Constant* const high = llvm::ConstantFP::get(x->getType(), past);
  llvm::Constant* const low = llvm::ConstantFP::get(x->getType(), is_signed ? -past : 0);
  llvm::Value* const inside = b.CreateAnd(b.CreateFCmpOGT(x, low), b.CreateFCmpOLT(x, high));
  llvm::Value* const safe = b.CreateSelect(inside, x, zero);
  llvm::Value* const y = is_signed ? b.CreateFPToSI(safe, type) : b.CreateFPToUI(safe, type);
  llvm::Value* const above = b.CreateSelect(b.CreateFCmpOGE(x, high), llvm::ConstantInt::get(type, most), y);
  return b.CreateSelect(b.CreateFCmpOLE(x, low), llvm::ConstantInt::get(type, least), above);
}

llvm::Value* cast(llvm::IRBuilder<>& b, DType from, DType to, llvm::Value* x, int width, bool fits) {
  llvm::Type* const type = vector_of(element_type(b.getContext(), to), width);
  if (from == to) return x;
  if (to == bool_) {
    if (is_floating(from)) return b.CreateFCmpUNE(x, llvm::Constant::getNullValue(x->getType()));
    return b.CreateICmpNE(x, integer(x, 0));
  }
  if (from == bool_) {
    if (is_floating(to))
      return b.CreateSelect(x, llvm::ConstantFP::get(type, 1), llvm::ConstantFP::get(type, 0));
    return b.CreateZExt(x, type);
  }
  if (is_floating(from)) {
    if (is_floating(to)) return b.CreateFPCast(x, type);
    return float_to_integer(b, to, type, x, fits);
  }
  if (is_floating(to)) return is_unsigned_integer(from) ? b.CreateUIToFP(x, type) : b.CreateSIToFP(x, type);
  return b.CreateIntCast(x, type, is_signed_integer(from));
}

/// One call per element.
llvm::Value* call(llvm::IRBuilder<>& b, Function f, const Operands& x, int width) {
  llvm::Type* const f64 = b.getDoubleTy();
  const bool two = operand_count(Code::call, static_cast<std::uint64_t>(f)) == 2;
  auto* const type = llvm::FunctionType::get(
      f64, two ? llvm::ArrayRef<llvm::Type*>{f64, f64} : llvm::ArrayRef<llvm::Type*>{f64}, false);
  llvm::FunctionCallee callee =
      b.GetInsertBlock()->getModule()->getOrInsertFunction(function_symbol(f), type);
  auto* const function = llvm::cast<llvm::Function>(callee.getCallee());
  function->setDoesNotThrow();
  function->setDoesNotAccessMemory();
  const auto one = [&](llvm::Value* p, llvm::Value* q) {
    return two ? b.CreateCall(callee, {p, q}) : b.CreateCall(callee, {p});
  };
  if (width == 1) return one(x.a, x.b);
  llvm::Value* result = llvm::PoisonValue::get(vector_of(f64, width));
  for (int l = 0; l < width; l++) {
    llvm::Value* const q = two ? b.CreateExtractElement(x.b, l) : nullptr;
    result = b.CreateInsertElement(result, one(b.CreateExtractElement(x.a, l), q), l);
  }
  return result;
}

llvm::Value* emit_unary(llvm::IRBuilder<>& b, const Instr& in, llvm::Value* a) {
  const bool floating = is_floating(in.type);
  switch (in.code) {
    case Code::neg: return floating ? b.CreateFNeg(a) : b.CreateNeg(a);
    case Code::abs:
      if (floating) return unary(b, intrinsic::fabs, a);
      return is_unsigned_integer(in.type)
                 ? a
                 : b.CreateSelect(b.CreateICmpSLT(a, integer(a, 0)), b.CreateNeg(a), a);
    case Code::sqrt: return unary(b, intrinsic::sqrt, a);
    case Code::floor: return unary(b, intrinsic::floor, a);
    case Code::ceil: return unary(b, intrinsic::ceil, a);
    case Code::round: return unary(b, intrinsic::nearbyint, a);
    case Code::trunc: return unary(b, intrinsic::trunc, a);
    default: return b.CreateNot(a);
  }
}

}  // namespace

llvm::Type* element_type(llvm::LLVMContext& c, DType t) {
  if (t == bool_) return llvm::Type::getInt1Ty(c);
  if (t == float32) return llvm::Type::getFloatTy(c);
  if (t == float64) return llvm::Type::getDoubleTy(c);
  return llvm::Type::getIntNTy(c, static_cast<unsigned>(8 * itemsize(t)));
}
llvm::Type* memory_type(llvm::LLVMContext& c, DType t) {
  return t == bool_ ? llvm::Type::getInt8Ty(c) : element_type(c, t);
}
llvm::Type* vector_of(llvm::Type* t, int width) {
  return width == 1 ? t : llvm::FixedVectorType::get(t, static_cast<unsigned>(width));
}
llvm::Constant* constant_of(llvm::LLVMContext& c, DType t, std::uint64_t bits, int width) {
  llvm::Type* const type = element_type(c, t);
  llvm::Constant* one = nullptr;
  if (is_floating(t)) {
    const llvm::APInt raw(static_cast<unsigned>(8 * itemsize(t)), bits);
    one = llvm::ConstantFP::get(c, llvm::APFloat(type->getFltSemantics(), raw));
  } else {
    one = llvm::ConstantInt::get(type, bits);
  }
  return width == 1 ? one
                    : llvm::ConstantVector::getSplat(
                          llvm::ElementCount::getFixed(static_cast<unsigned>(width)), one);
}
std::string function_symbol(Function f) { return std::string("shardarray_f64_") + name(f); }

llvm::Value* emit_binary(llvm::IRBuilder<>& b, Code code, DType t, llvm::Value* x, llvm::Value* y) {
  const bool floating = is_floating(t);
  switch (code) {
    case Code::add: return floating ? b.CreateFAdd(x, y) : b.CreateAdd(x, y);
    case Code::sub: return floating ? b.CreateFSub(x, y) : b.CreateSub(x, y);
    case Code::mul: return floating ? b.CreateFMul(x, y) : b.CreateMul(x, y);
    case Code::div: return floating ? b.CreateFDiv(x, y) : integer_division(b, false, t, x, y);
    case Code::rem: return floating ? b.CreateFRem(x, y) : integer_division(b, true, t, x, y);
    case Code::min:
    case Code::max: {
      const bool max = code == Code::max;
      return floating ? float_extreme(b, max, t, x, y) : integer_extreme(b, max, t, x, y);
    }
    case Code::and_: return b.CreateAnd(x, y);
    case Code::or_: return b.CreateOr(x, y);
    case Code::xor_: return b.CreateXor(x, y);
    case Code::shl:
    case Code::shr: return shift(b, code == Code::shl, t, x, y);
    default: return compare(b, code, t, x, y);
  }
}

llvm::Value* emit_value(llvm::IRBuilder<>& b, const Instr& in, const Operands& x, int width) {
  switch (in.code) {
    case Code::constant: return constant_of(b.getContext(), in.type, in.imm, width);
    case Code::cast: return cast(b, x.type, in.type, x.a, width, x.fits);
    case Code::bitcast: return b.CreateBitCast(x.a, vector_of(element_type(b.getContext(), in.type), width));
    case Code::fma: return b.CreateIntrinsic(intrinsic::fma, {x.a->getType()}, {x.a, x.b, x.c});
    case Code::select: return b.CreateSelect(x.a, x.b, x.c);
    case Code::call: return call(b, static_cast<Function>(in.imm), x, width);
    default: break;
  }
  if (in.code >= Code::neg && in.code <= Code::not_) return emit_unary(b, in, x.a);
  return emit_binary(b, in.code, x.type, x.a, x.b);
}

}  // namespace shardarray::codegen
