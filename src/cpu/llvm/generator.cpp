#include "cpu/llvm/generator.h"

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/SubtargetFeature.h>

#include <mutex>

#include "cpu/llvm/gemm_emitter.h"
#include "cpu/llvm/sequence_emitter.h"

#include "generator_hash.h"
#include "shardarray/error.h"

namespace shardarray::codegen {

void fail(const std::string& what) {
  throw CompileError("code generation: " + what + ". Please report this.");
}

namespace {

std::string host_features() {
  llvm::SubtargetFeatures features;
  for (const auto& [name, on] : llvm::sys::getHostCPUFeatures()) features.AddFeature(name, on);
  return features.getString();
}

/// What the shape of the code depends on.
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

/// Loops are vectors already: what is left is to tidy up.
void optimize(llvm::Module& m, llvm::TargetMachine& machine, CodeTier tier) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager calls;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(calls);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, calls, modules);
  llvm::ModulePassManager passes;
  const char* const full =
      "function(sroa,early-cse,instcombine<no-verify-fixpoint>,loop-mssa(licm),early-cse)";
  if (auto e = builder.parsePassPipeline(passes, tier == CodeTier::full ? full : "function(sroa,early-cse)"))
    fail(llvm::toString(std::move(e)));
  passes.run(m, modules);
}

std::vector<char> object_of(llvm::Module& m, llvm::TargetMachine& machine) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile))
    fail("no object files for this CPU");
  passes.run(m);
  return {bytes.begin(), bytes.end()};
}

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
  machine_ = machine_of(*machine_for(CodeTier::full));
  target_ = "generator " SHARDARRAY_GENERATOR_HASH ", LLVM " LLVM_VERSION_STRING ", " + triple_ + ", " +
            cpu_ + ", " + features_;
  linker_ = std::make_shared<Linker>();
}

std::unique_ptr<llvm::TargetMachine> LlvmGenerator::machine_for(CodeTier tier) const {
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  const auto level = tier == CodeTier::full ? llvm::CodeGenOptLevel::Default : llvm::CodeGenOptLevel::None;
  std::unique_ptr<llvm::TargetMachine> machine(llvm_target_->createTargetMachine(
      triple_, cpu_, features_, options, llvm::Reloc::PIC_, llvm::CodeModel::Small, level, true));
  if (!machine) fail("no machine for " + triple_);
  return machine;
}

std::vector<char> LlvmGenerator::compile(std::span<const CodeSpec> specs, CodeTier tier) {
  const auto machine = machine_for(tier);
  llvm::LLVMContext context;
  llvm::Module module("kernels", context);
  module.setDataLayout(machine->createDataLayout());
  module.setTargetTriple(triple_);
  struct Emit {
    llvm::Module& module;
    const Machine& machine;
    std::string name;
    llvm::Function* operator()(const NestSpec& s) const { return NestEmitter(module, s, machine).emit(name); }
    llvm::Function* operator()(const GemmSpec& s) const { return GemmEmitter(module, s, machine).emit(name); }
    llvm::Function* operator()(const SequenceSpec& s) const {
      return emit_sequence(module, s, name, [this](const KernelSpec& k, const std::string& part) {
        return std::visit(Emit{module, machine, part}, k);
      });
    }
  };
  for (std::size_t k = 0; k < specs.size(); k++)
    std::visit(Emit{module, machine_, "k" + std::to_string(k)}, specs[k]);
  for (llvm::Function& f : module) {
    if (f.isDeclaration()) continue;
    f.addFnAttr("target-cpu", cpu_);
    f.addFnAttr("target-features", features_);
  }
  std::string problem;
  llvm::raw_string_ostream text(problem);
  if (llvm::verifyModule(module, &text)) fail("a broken module: " + problem);
  optimize(module, *machine, tier);
  return object_of(module, *machine);
}

}  // namespace shardarray::codegen
