#include "cpu/codegen/llvm/generator.h"

#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/SubtargetFeature.h>

#include "cpu/codegen/llvm/fatal.h"
#include "cpu/codegen/llvm/gemm_emitter.h"
#include "cpu/codegen/llvm/move_emitter.h"
#include "cpu/codegen/llvm/sequence_emitter.h"
#include "cpu/codegen/llvm/update_emitter.h"

#include "generator_hash.h"
#include "shardarray/error.h"

namespace shardarray::codegen {

namespace {

std::string host_features() {
  llvm::SubtargetFeatures features;
  for (const auto& [name, on] : llvm::sys::getHostCPUFeatures()) features.AddFeature(name, on);
  return features.getString();
}

/// Machine properties that the code's shape depends on.
Machine machine_of(const llvm::TargetMachine& m) {
  const llvm::MCSubtargetInfo& info = *m.getMCSubtargetInfo();
  const llvm::Triple& triple = m.getTargetTriple();
  Machine machine;
  if (triple.getArch() != llvm::Triple::x86_64) return machine;
  if (info.checkFeatures("+avx512f,+avx512bw,+avx512dq,+avx512vl")) machine.vector_bytes = 64;
  else if (info.checkFeatures("+avx")) machine.vector_bytes = 32;
  machine.masked = info.checkFeatures("+avx2");
  return machine;
}

/// Everything that LLVM needs for one object. Members are destroyed in reverse order.
class Compilation : public LlvmState {
 public:
  Compilation(std::shared_ptr<llvm::TargetMachine> machine, const std::string& triple)
      : machine_(std::move(machine)),
        module_("kernels", context_),
        builder_(machine_.get()),
        stream_(bytes_) {
    // Without a callback LLVM prints errors and ends the process.
    context_.setDiagnosticHandlerCallBack(
        [](const llvm::DiagnosticInfo* info, void* to) {
          std::string& problem = *static_cast<std::string*>(to);
          if (info->getSeverity() != llvm::DS_Error || !problem.empty()) return;
          llvm::raw_string_ostream text(problem);
          llvm::DiagnosticPrinterRawOStream printer(text);
          info->print(printer);
          problem.resize(llvm::StringRef(problem).rtrim().size());
        },
        &problem_);
    module_.setDataLayout(machine_->createDataLayout());
    module_.setTargetTriple(triple);
  }

  llvm::Module& module() { return module_; }

  void verify() {
    llvm::raw_string_ostream text(problem_);
    if (llvm::verifyModule(module_, &text)) fail("a broken module: " + problem_);
  }

  /// Loops are already vectorized; only cleanup is left.
  void optimize(CodeTier tier) {
    builder_.registerModuleAnalyses(modules_);
    builder_.registerCGSCCAnalyses(calls_);
    builder_.registerFunctionAnalyses(functions_);
    builder_.registerLoopAnalyses(loops_);
    builder_.crossRegisterProxies(loops_, functions_, calls_, modules_);
    const char
        *const full =
                   "always-inline,globaldce,"
                   "function(sroa,early-cse,instcombine<no-verify-fixpoint>,loop-mssa(licm),early-cse)",
               *const quick = "always-inline,globaldce,function(sroa,early-cse)";
    if (auto e = builder_.parsePassPipeline(passes_, tier == CodeTier::full ? full : quick))
      fail(llvm::toString(std::move(e)));
    passes_.run(module_, modules_);
  }

  std::vector<char> object() {
    if (machine_->addPassesToEmitFile(emission_, stream_, nullptr, llvm::CodeGenFileType::ObjectFile))
      fail("no object files for this CPU");
    emission_.run(module_);
    if (!problem_.empty()) fail(problem_);
    return {bytes_.begin(), bytes_.end()};
  }

 private:
  std::shared_ptr<llvm::TargetMachine> machine_;
  std::string problem_;
  llvm::LLVMContext context_;
  llvm::Module module_;
  llvm::LoopAnalysisManager loops_;
  llvm::FunctionAnalysisManager functions_;
  llvm::CGSCCAnalysisManager calls_;
  llvm::ModuleAnalysisManager modules_;
  llvm::PassBuilder builder_;
  llvm::ModulePassManager passes_;
  llvm::SmallVector<char, 0> bytes_;
  llvm::raw_svector_ostream stream_;
  llvm::legacy::PassManager emission_;
};

}  // namespace

LlvmGenerator::LlvmGenerator(std::string cpu, std::string features, std::string triple)
    : triple_(std::move(triple)), cpu_(std::move(cpu)), features_(std::move(features)) {
  static std::once_flag native, all;
  std::call_once(native, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  if (triple_.empty()) triple_ = llvm::sys::getProcessTriple();
  else
    std::call_once(all, [] {
      llvm::InitializeAllTargetInfos();
      llvm::InitializeAllTargets();
      llvm::InitializeAllTargetMCs();
      llvm::InitializeAllAsmPrinters();
    });
  if (cpu_.empty()) cpu_ = llvm::sys::getHostCPUName().str(), features_ = host_features();
  std::string error;
  llvm_target_ = llvm::TargetRegistry::lookupTarget(triple_, error);
  if (!llvm_target_) fail(error);
  auto machine = machine_for(CodeTier::full);
  machine_ = machine_of(*machine);
  give_back(std::move(machine), CodeTier::full);
  target_ = "generator " SHARDARRAY_GENERATOR_HASH ", LLVM " LLVM_VERSION_STRING ", " + triple_ + ", " +
            cpu_ + ", " + features_;
  (void)linker();
}

std::shared_ptr<llvm::TargetMachine> LlvmGenerator::machine_for(CodeTier tier) {
  {
    const std::lock_guard lock(mutex_);
    auto& idle = idle_[static_cast<int>(tier)];
    if (!idle.empty()) {
      auto machine = std::move(idle.back());
      idle.pop_back();
      return machine;
    }
  }
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  const auto level = tier == CodeTier::full ? llvm::CodeGenOptLevel::Default : llvm::CodeGenOptLevel::None;
  std::shared_ptr<llvm::TargetMachine> machine(call_llvm(std::make_shared<LlvmState>(), [&](auto&) {
    return llvm_target_->createTargetMachine(triple_, cpu_, features_, options, llvm::Reloc::PIC_,
                                             llvm::CodeModel::Small, level, true);
  }));
  if (!machine) fail("no machine for " + triple_);
  return machine;
}

void LlvmGenerator::give_back(std::shared_ptr<llvm::TargetMachine> machine, CodeTier tier) {
  const std::lock_guard lock(mutex_);
  idle_[static_cast<int>(tier)].push_back(std::move(machine));
}

std::vector<char> LlvmGenerator::compile(std::span<const CodeSpec> specs, CodeTier tier) {
  struct Emit {
    llvm::Module& module;
    const Machine& machine;
    std::string name;
    llvm::Function* operator()(const LoopNestSpec& s) const {
      return LoopNestEmitter(module, s, machine).emit(name);
    }
    llvm::Function* operator()(const GemmSpec& s) const { return GemmEmitter(module, s, machine).emit(name); }
    llvm::Function* operator()(const MoveSpec& s) const { return emit_move(module, s, name); }
    llvm::Function* operator()(const UpdateSpec& s) const { return emit_update(module, s, name); }
    llvm::Function* operator()(const SequenceSpec& s) const {
      const auto kernel = [this](const KernelSpec& k, const std::string& part) {
        return std::visit(Emit{module, machine, part}, k);
      };
      return SequenceEmitter(module, name, kernel).emit(s);
    }
  };
  auto machine = machine_for(tier);
  auto compilation = std::make_shared<Compilation>(machine, triple_);
  auto object = call_llvm(compilation, [&](Compilation& c) {
    for (std::size_t k = 0; k < specs.size(); k++)
      std::visit(Emit{c.module(), machine_, "k" + std::to_string(k)}, specs[k]);
    for (llvm::Function& f : c.module()) {
      if (f.isDeclaration()) continue;
      f.addFnAttr("target-cpu", cpu_);
      f.addFnAttr("target-features", features_);
    }
    c.verify();
    c.optimize(tier);
    return c.object();
  });
  compilation.reset();  // it uses the machine
  give_back(std::move(machine), tier);
  return object;
}

}  // namespace shardarray::codegen
