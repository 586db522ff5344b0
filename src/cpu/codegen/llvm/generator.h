// LlvmGenerator: the plug-in's code generator.
#pragma once
#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/Target/TargetMachine.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cpu/codegen/codegen.h"
#include "cpu/codegen/llvm/fatal.h"
#include "cpu/codegen/llvm/nest_emitter.h"

namespace shardarray::codegen {

/// What all objects in memory need, kept until the last of them is gone.
struct Linker : LlvmState {
  std::unique_ptr<llvm::orc::ExecutionSession> session;
  std::unique_ptr<llvm::orc::ObjectLinkingLayer> layer;
  std::atomic<std::uint64_t> count{0};
  Linker();
  ~Linker();
};

class LlvmGenerator final : public CodeGenerator {
 public:
  /// Empty: this machine's.
  LlvmGenerator(std::string cpu, std::string features, std::string triple);
  const std::string& target() const override { return target_; }
  std::vector<char> compile(std::span<const CodeSpec> specs, CodeTier tier) override;
  std::shared_ptr<const LinkedCode> link(std::span<const char> object, std::size_t count) override;

 private:
  /// TargetMachines are expensive (their tables take as long as a small kernel), so each tier's compilations reuse them.
  std::shared_ptr<llvm::TargetMachine> machine_for(CodeTier tier);
  void give_back(std::shared_ptr<llvm::TargetMachine> machine, CodeTier tier);
  std::shared_ptr<Linker> linker();

  std::string triple_, cpu_, features_, target_;
  const llvm::Target* llvm_target_ = nullptr;
  Machine machine_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<llvm::TargetMachine>> idle_[2];  // by tier
  std::shared_ptr<Linker> linker_;
};

}  // namespace shardarray::codegen
