// Emits a SequenceSpec as one LLVM function that calls its kernels; in loops and branches they are inlined.
#pragma once
#include <llvm/IR/Module.h>

#include <array>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cpu/codegen/code_spec.h"
#include "cpu/codegen/llvm/values.h"

namespace shardarray::codegen {

class SequenceEmitter {
 public:
  /// Adds a function for one kernel.
  using EmitKernel = std::function<llvm::Function*(const KernelSpec& spec, const std::string& name)>;
  SequenceEmitter(llvm::Module& module, std::string name, EmitKernel emit_kernel)
      : module_(module),
        name_(std::move(name)),
        emit_kernel_(std::move(emit_kernel)),
        b_(module.getContext()) {}
  /// Adds `void name(bases, ...)`.
  llvm::Function* emit(const SequenceSpec& spec);

 private:
  using Values = std::vector<llvm::Value*>;
  /// A sequence where it runs.
  struct Scope {
    const SequenceSpec& spec;
    Values bases;  // their addresses; null: not used
    bool inlines;
  };
  /// The bases of an inner sequence in the runs of a loop.
  struct Runs {
    const SequenceSpec::Inner& inner;
    std::vector<std::array<llvm::Value*, 3>> first;  // base -> its addresses in runs 0 to 2
    Values now, next;  // in this run; in the next one, if that is not a stride away
  };
  void emit_steps(const Scope& scope);
  void emit_step(const Scope& in, const SequenceSpec::Call& call);
  void emit_step(const Scope& in, const SequenceSpec::Repeat& repeat);
  void emit_step(const Scope& in, const SequenceSpec::Choose& choose);
  void emit_step(const Scope& in, const SequenceSpec::While& loop);
  void run_once(const Scope& in, const SequenceSpec::Inner& inner);
  Runs before_runs(const Scope& in, const SequenceSpec::Inner& inner);
  void begin_run(Runs& runs, llvm::BasicBlock* before);
  void end_run(Runs& runs, llvm::Value* number);

  llvm::Function* function(const Scope& in, std::size_t kernel);
  llvm::AllocaInst* room_for(std::size_t arguments);
  llvm::Constant* list(const std::vector<std::int64_t>& numbers);
  llvm::Value* address(const Scope& in, const Ref& r);
  llvm::BasicBlock* block(const char* name);

  llvm::Module& module_;
  std::string name_;
  EmitKernel emit_kernel_;
  llvm::IRBuilder<> b_;
  llvm::Function* function_ = nullptr;
  llvm::AllocaInst* shared_ = nullptr;  // the arguments of calls that are not inlined
  std::map<std::pair<const SequenceSpec*, std::size_t>, llvm::Function*> functions_;
};

}  // namespace shardarray::codegen
