// CodeStore: the machine code of this process, by kernel; compiled, or taken from the object cache.
#pragma once
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "cpu/codegen.h"
#include "cpu/object_cache.h"

namespace shardarray {

/// SHARDARRAY_CODEGEN. on: programs that are worth it are compiled; always: all of them, before their first run.
enum class CodegenMode : std::uint8_t { off, on, always };
/// Throws Error for another word in the variable.
CodegenMode codegen_mode();
/// Returns the mode before.
CodegenMode set_codegen_mode(CodegenMode m);

/// A kernel's code; alive as long as this.
struct MachineCode {
  std::shared_ptr<const LinkedCode> module;
  NestFunction function = nullptr;
};

class CodeStore {
 public:
  /// Of the process; never destroyed. Its plug-in is opened at the first use.
  static CodeStore& instance();
  CodeStore(std::unique_ptr<CodeGenerator> generator, std::string cache_folder);

  /// The code of every spec, compiled as one module where it is missing. Throws CompileError.
  std::vector<MachineCode> get(const std::vector<CodeSpec>& specs, CodeTier tier);

  struct Stats {
    int compiled = 0, loaded = 0;  ///< modules that were compiled, that came from the disk
  };
  Stats stats();

 private:
  struct KeyHash {
    std::size_t operator()(const CodeKey& k) const;
  };
  struct Known {
    std::weak_ptr<const LinkedCode> module;
    NestFunction function = nullptr;
    CodeTier tier = CodeTier::quick;
  };
  std::shared_ptr<const LinkedCode> build(const std::vector<CodeSpec>& specs,
                                          const std::vector<const CodeKey*>& keys, CodeTier tier);
  bool find(const CodeKey& key, CodeTier tier, MachineCode& code);
  void remember(const CodeKey& key, CodeTier tier, const MachineCode& code);

  std::unique_ptr<CodeGenerator> generator_;
  ObjectCache cache_;
  std::mutex mutex_;
  std::unordered_map<CodeKey, Known, KeyHash> known_;
  std::deque<std::shared_ptr<const LinkedCode>> recent_;  // kept although no program needs them at the moment
  Stats stats_;
};

/// As `CodeStore::get`, of the process; nothing when there is no plug-in or it failed, which is said once on
/// stderr: programs go on in the interpreter.
std::optional<std::vector<MachineCode>> try_compile(const std::vector<CodeSpec>& specs, CodeTier tier);

}  // namespace shardarray
