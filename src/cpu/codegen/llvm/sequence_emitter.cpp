#include "cpu/codegen/llvm/sequence_emitter.h"

#include <llvm/IR/Module.h>

#include <algorithm>
#include <map>

namespace shardarray::codegen {

namespace {

llvm::Constant* list_of(llvm::Module& module, const std::vector<std::int64_t>& numbers) {
  auto* const i64 = llvm::Type::getInt64Ty(module.getContext());
  if (numbers.empty()) return llvm::ConstantPointerNull::get(llvm::PointerType::get(module.getContext(), 0));
  std::vector<llvm::Constant*> list;
  list.reserve(numbers.size());
  for (const std::int64_t x : numbers) list.push_back(llvm::ConstantInt::getSigned(i64, x));
  auto* const type = llvm::ArrayType::get(i64, list.size());
  return new llvm::GlobalVariable(module, type, true, llvm::GlobalValue::InternalLinkage,
                                  llvm::ConstantArray::get(type, list), "numbers");
}

}  // namespace

llvm::Function* emit_sequence(
    llvm::Module& module, const SequenceSpec& spec, const std::string& name,
    const std::function<llvm::Function*(const KernelSpec& spec, const std::string& name)>& kernel) {
  std::vector<llvm::Function*> functions;
  for (const KernelSpec& k : spec.kernels) {
    functions.push_back(kernel(k, name + "." + std::to_string(functions.size())));
    functions.back()->setLinkage(llvm::GlobalValue::InternalLinkage);
  }
  llvm::LLVMContext& context = module.getContext();
  llvm::IRBuilder<> b(context);
  auto* const p = llvm::PointerType::get(context, 0);
  llvm::Function* const f = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), {p, p, p}, false),
                                                   llvm::Function::ExternalLinkage, name, module);
  f->setDoesNotThrow();
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", f));
  std::size_t most = 1;
  for (const SequenceSpec::Call& c : spec.calls) most = std::max(most, c.args.size());
  llvm::Value* const args = b.CreateAlloca(p, b.getInt64(most));
  std::map<std::uint32_t, llvm::Value*> bases;
  for (const SequenceSpec::Call& c : spec.calls) {
    for (std::size_t k = 0; k < c.args.size(); k++) {
      llvm::Value*& base = bases[c.args[k].base];
      if (!base) base = b.CreateLoad(p, b.CreateConstGEP1_64(p, f->getArg(0), c.args[k].base));
      b.CreateStore(b.CreateConstGEP1_64(b.getInt8Ty(), base, c.args[k].offset),
                    b.CreateConstGEP1_64(p, args, k));
    }
    const auto* const gemm = std::get_if<GemmSpec>(&spec.kernels[c.kernel]);
    const std::vector<std::int64_t> box =
        gemm ? std::vector<std::int64_t>{0, gemm->batch} : std::vector<std::int64_t>();
    b.CreateCall(functions[c.kernel], {args, list_of(module, c.numbers), list_of(module, box)});
  }
  b.CreateRetVoid();
  return f;
}

}  // namespace shardarray::codegen
