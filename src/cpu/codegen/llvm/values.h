// Kernel IR instructions as LLVM IR, on one element or a vector: the arithmetic of runtime/scalar.h, opcode by opcode.
#pragma once
#include <llvm/IR/IRBuilder.h>

#include "runtime/kernel.h"

namespace shardarray::codegen {

/// bool values are i1; in memory, a byte 0 or 1.
llvm::Type* element_type(llvm::LLVMContext& c, DType t);
llvm::Type* memory_type(llvm::LLVMContext& c, DType t);
/// `t` itself for width 1.
llvm::Type* vector_of(llvm::Type* t, int width);
/// The constant with these bits, as a register value.
llvm::Constant* constant_of(llvm::LLVMContext& c, DType t, std::uint64_t bits, int width);
/// The symbol of the function that computes `f` on float64.
std::string function_symbol(Function f);

struct Operands {
  DType type;  ///< of `a` (select: of its values)
  llvm::Value *a = nullptr, *b = nullptr, *c = nullptr;
  bool fits = false;  ///< for a cast: the operand is NaN or well inside int32's range
};
/// Any instruction except memory accesses, index and reduce; operands have `width` elements.
llvm::Value* emit_value(llvm::IRBuilder<>& b, const Instr& in, const Operands& x, int width);
/// Combines two values with a binary opcode.
llvm::Value* emit_binary(llvm::IRBuilder<>& b, Code code, DType t, llvm::Value* x, llvm::Value* y);

}  // namespace shardarray::codegen
