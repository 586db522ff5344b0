#include "cpu/codegen/llvm/sequence_emitter.h"

#include <algorithm>

#include "cpu/codegen/llvm/row_access.h"

namespace shardarray::codegen {

namespace {
std::uint64_t stack_bytes(const llvm::Function& f) {
  std::uint64_t bytes = 0;
  for (const llvm::Instruction& in : f.getEntryBlock())
    if (const auto* const a = llvm::dyn_cast<llvm::AllocaInst>(&in))
      bytes += a->getAllocationSize(f.getParent()->getDataLayout())->getFixedValue();
  return bytes;
}
bool same(const Ref& x, const Ref& y) { return x.base == y.base && x.offset == y.offset; }
}  // namespace

llvm::Function* SequenceEmitter::emit(const SequenceSpec& spec) {
  auto* const p = b_.getPtrTy();
  function_ = add_function(module_, name_);
  // Allocas go to the start of this block; the code follows in another one.
  llvm::BasicBlock *const entry = block("entry"), *const start = block("start");
  b_.SetInsertPoint(start);
  Scope all{spec, {}, false};
  std::size_t most = 1;
  for (const SequenceSpec::Step& step : spec.steps) {
    if (const auto* const call = std::get_if<SequenceSpec::Call>(&step))
      most = std::max(most, call->args.size());
    each_ref(step, [&](const Ref& r) {
      if (all.bases.size() <= r.base) all.bases.resize(r.base + 1);
      llvm::Value*& base = all.bases[r.base];
      if (!base) base = b_.CreateLoad(p, b_.CreateConstGEP1_64(p, function_->getArg(0), r.base));
    });
  }
  shared_ = room_for(most);
  emit_steps(all);
  b_.CreateRetVoid();
  llvm::IRBuilder<>(entry).CreateBr(start);
  return function_;
}

void SequenceEmitter::emit_steps(const Scope& scope) {
  for (const SequenceSpec::Step& step : scope.spec.steps)
    std::visit([&](const auto& x) { emit_step(scope, x); }, step);
}

void SequenceEmitter::emit_step(const Scope& in, const SequenceSpec::Call& call) {
  llvm::Value* const args = in.inlines ? room_for(call.args.size()) : shared_;
  for (std::size_t k = 0; k < call.args.size(); k++)
    b_.CreateStore(address(in, call.args[k]), b_.CreateConstGEP1_64(b_.getPtrTy(), args, k));
  const auto* const gemm = std::get_if<GemmSpec>(&in.spec.kernels[call.kernel]);
  const std::vector<std::int64_t> box =
      gemm ? std::vector<std::int64_t>{0, gemm->batch} : std::vector<std::int64_t>();
  llvm::Function* const kernel = function(in, call.kernel);
  llvm::CallInst* const made = b_.CreateCall(kernel, {args, list(call.numbers), list(box)});
  // Products take longer than their calls, and loop invariants of their unrolled code would fill the registers. Buffers of all kernels would
  // be on the stack at once.
  constexpr std::uint64_t most_stack = 1024;
  if (in.inlines && !gemm && stack_bytes(*kernel) <= most_stack)
    made->addFnAttr(llvm::Attribute::AlwaysInline);
}

void SequenceEmitter::emit_step(const Scope& in, const SequenceSpec::Repeat& repeat) {
  if (repeat.trip == 1) return run_once(in, repeat.body);
  Runs runs = before_runs(in, repeat.body);
  llvm::BasicBlock* const before = b_.GetInsertBlock();
  emit_turns(b_, b_.getInt64(0), b_.getInt64(static_cast<std::uint64_t>(repeat.trip)), [&](llvm::Value* k) {
    begin_run(runs, before);
    emit_steps({*repeat.body.sequence, runs.now, true});
    end_run(runs, k);
    return b_.CreateAdd(k, b_.getInt64(1));
  });
}

void SequenceEmitter::emit_step(const Scope& in, const SequenceSpec::Choose& choose) {
  llvm::Value* const index = b_.CreateAlignedLoad(b_.getInt32Ty(), address(in, choose.index), llvm::Align(1));
  llvm::BasicBlock *const first = block("branch"), *const after = block("after");
  llvm::SwitchInst* const jump = b_.CreateSwitch(index, first);
  for (std::size_t k = 0; k < choose.branches.size(); k++) {
    llvm::BasicBlock* const at = k == 0 ? first : block("branch");
    if (k > 0) jump->addCase(b_.getInt32(static_cast<std::uint32_t>(k)), at);
    b_.SetInsertPoint(at);
    run_once(in, choose.branches[k]);
    b_.CreateBr(after);
  }
  b_.SetInsertPoint(after);
}

void SequenceEmitter::emit_step(const Scope& in, const SequenceSpec::While& loop) {
  Runs of_condition = before_runs(in, loop.condition), of_body = before_runs(in, loop.body);
  llvm::Value* const answer = address(in, loop.answer);
  std::vector<std::array<llvm::Value*, 3>> carries;
  for (const ProgramLoop::Carry& c : loop.carries)
    carries.push_back({address(in, c.first), address(in, c.even), address(in, c.odd)});
  llvm::BasicBlock *const before = b_.GetInsertBlock(), *const ask = block("ask"), *const run = block("run"),
                          *const ran = block("ran");
  b_.CreateBr(ask);
  b_.SetInsertPoint(ask);
  llvm::PHINode* const number = b_.CreatePHI(b_.getInt64Ty(), 2);
  number->addIncoming(b_.getInt64(0), before);
  begin_run(of_condition, before);
  begin_run(of_body, before);
  emit_steps({*loop.condition.sequence, of_condition.now, true});
  llvm::Value* const yes = b_.CreateLoad(b_.getInt8Ty(), answer);
  b_.CreateCondBr(b_.CreateICmpNE(yes, b_.getInt8(0)), run, ran);
  b_.SetInsertPoint(run);
  emit_steps({*loop.body.sequence, of_body.now, true});
  end_run(of_condition, number);
  end_run(of_body, number);
  number->addIncoming(b_.CreateAdd(number, b_.getInt64(1)), b_.GetInsertBlock());
  b_.CreateBr(ask);
  b_.SetInsertPoint(ran);
  // The last run wrote to where the results belong if the number of runs is odd.
  emit_if(b_, b_.CreateICmpEQ(b_.CreateAnd(number, b_.getInt64(1)), b_.getInt64(0)), [&] {
    llvm::Value* const none = b_.CreateICmpEQ(number, b_.getInt64(0));
    for (std::size_t k = 0; k < carries.size(); k++) {
      const auto& [first, even, odd] = carries[k];
      emit_copy(b_, even, b_.CreateSelect(none, first, odd),
                static_cast<std::int64_t>(loop.carries[k].bytes));
    }
  });
}

void SequenceEmitter::run_once(const Scope& in, const SequenceSpec::Inner& inner) {
  Values bases;
  for (const ProgramCall::Binding& b : inner.bases) bases.push_back(address(in, b.at(0)));
  emit_steps({*inner.sequence, std::move(bases), true});
}

SequenceEmitter::Runs SequenceEmitter::before_runs(const Scope& in, const SequenceSpec::Inner& inner) {
  Runs runs{inner, {}, Values(inner.bases.size()), Values(inner.bases.size())};
  for (const ProgramCall::Binding& b : inner.bases)
    runs.first.push_back({address(in, b.at(0)), address(in, b.at(1)), address(in, b.at(2))});
  return runs;
}

/// At the start of the loop's first block.
void SequenceEmitter::begin_run(Runs& runs, llvm::BasicBlock* before) {
  const auto phi = [&](llvm::Value* first) {
    llvm::PHINode* const made = b_.CreatePHI(b_.getPtrTy(), 2);
    made->addIncoming(first, before);
    return made;
  };
  for (std::size_t k = 0; k < runs.now.size(); k++) {
    const ProgramCall::Binding& b = runs.inner.bases[k];
    const bool one_place = same(b.first, b.even) && same(b.even, b.odd);
    runs.now[k] = one_place && b.stride == 0 ? runs.first[k][0] : phi(runs.first[k][0]);
    if (!one_place) runs.next[k] = phi(runs.first[k][1]);
  }
}

/// At the end of the loop's last block.
void SequenceEmitter::end_run(Runs& runs, llvm::Value* number) {
  llvm::Value* const is_first = b_.CreateICmpEQ(number, b_.getInt64(0));
  const auto moved = [&](llvm::Value* from, std::int64_t by) {
    return b_.CreateConstGEP1_64(b_.getInt8Ty(), from, static_cast<std::uint64_t>(by));
  };
  const auto continues = [&](llvm::Value* phi, llvm::Value* with) {
    llvm::cast<llvm::PHINode>(phi)->addIncoming(with, b_.GetInsertBlock());
  };
  for (std::size_t k = 0; k < runs.now.size(); k++) {
    const std::int64_t stride = runs.inner.bases[k].stride;
    if (llvm::Value* const next = runs.next[k]) {
      continues(runs.now[k], next);
      continues(next, b_.CreateSelect(is_first, runs.first[k][2], moved(runs.now[k], 2 * stride)));
    } else if (stride != 0) {
      continues(runs.now[k], moved(runs.now[k], stride));
    }
  }
}

llvm::Function* SequenceEmitter::function(const Scope& in, std::size_t kernel) {
  llvm::Function*& known = functions_[{&in.spec, kernel}];
  if (!known) {
    known = emit_kernel_(in.spec.kernels[kernel], name_ + "." + std::to_string(functions_.size()));
    known->setLinkage(llvm::GlobalValue::InternalLinkage);
  }
  return known;
}

llvm::AllocaInst* SequenceEmitter::room_for(std::size_t arguments) {
  llvm::BasicBlock& entry = function_->getEntryBlock();
  return llvm::IRBuilder<>(&entry, entry.begin()).CreateAlloca(b_.getPtrTy(), b_.getInt64(arguments));
}

llvm::Constant* SequenceEmitter::list(const std::vector<std::int64_t>& numbers) {
  if (numbers.empty()) return llvm::ConstantPointerNull::get(b_.getPtrTy());
  std::vector<llvm::Constant*> constants;
  constants.reserve(numbers.size());
  for (const std::int64_t x : numbers) constants.push_back(llvm::ConstantInt::getSigned(b_.getInt64Ty(), x));
  auto* const type = llvm::ArrayType::get(b_.getInt64Ty(), constants.size());
  return new llvm::GlobalVariable(module_, type, true, llvm::GlobalValue::InternalLinkage,
                                  llvm::ConstantArray::get(type, constants), "numbers");
}

llvm::Value* SequenceEmitter::address(const Scope& in, const Ref& r) {
  return b_.CreateConstGEP1_64(b_.getInt8Ty(), in.bases[r.base], r.offset);
}

llvm::BasicBlock* SequenceEmitter::block(const char* name) {
  return llvm::BasicBlock::Create(module_.getContext(), name, function_);
}

}  // namespace shardarray::codegen
