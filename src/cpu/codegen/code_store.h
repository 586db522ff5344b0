// CodeStore: the machine code of this process, by kernel; compiled, or taken from the object cache.
#pragma once
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/codegen_mode.h"
#include "cpu/codegen/codegen.h"
#include "runtime/object_cache.h"

namespace shardarray {

/// Of the CPU: the environment's, until another one is set.
CodegenMode codegen_mode();
/// Returns the mode before.
CodegenMode set_codegen_mode(CodegenMode m);

/// A kernel's code; alive as long as this. No function: it could not be compiled.
struct MachineCode {
  std::shared_ptr<const LinkedCode> module;
  LoopNestFunction function = nullptr;
};

class CodeStore {
 public:
  /// Of the process; never destroyed. Its plug-in is opened at the first use. Throws CompileError.
  static CodeStore& instance();
  /// Sets the one of the process (tests). Null: the real one. Returns the one before, null for that.
  static CodeStore* set_instance(CodeStore* store);
  CodeStore(std::unique_ptr<CodeGenerator> generator, const std::string& cache_folder);

  /// The code of every spec. Each is compiled, and kept on disk, by itself. One that cannot be has no function this time, which
  /// is said once on stderr: it is tried again when it is asked for again.
  std::vector<MachineCode> get(const std::vector<CodeSpec>& specs, CodeTier tier);

  /// Whether get() of it compiles nothing.
  bool has(const CodeSpec& spec, CodeTier tier);

  struct Stats {
    int compiled = 0, loaded = 0,
        failed = 0;  ///< kernels that were compiled, that came from the disk, that could not be
  };
  Stats stats();

 private:
  struct Known {
    std::weak_ptr<const LinkedCode> module;
    LoopNestFunction function = nullptr;
    CodeTier tier = CodeTier::quick;
  };
  std::vector<char> object_key(const Words& words, CodeTier tier) const;
  std::shared_ptr<const LinkedCode> build(const CodeSpec& spec, const Words& key, CodeTier tier);
  MachineCode code_of(const CodeSpec& spec, CodeTier tier);
  void say(const std::string& problem);
  bool find(const Words& key, CodeTier tier, MachineCode& code);
  void remember(const Words& key, CodeTier tier, const MachineCode& code);
  void close_at_exit();

  std::unique_ptr<CodeGenerator> generator_;
  ObjectCache cache_;
  std::mutex mutex_;
  std::unordered_map<Words, Known, WordsHash> known_;
  std::deque<std::shared_ptr<const LinkedCode>> recent_;  // kept although no program needs them at the moment
  std::vector<std::string> said_;
  Stats stats_;
  int exits_ = 0;  // how often exit() was told
};

/// As `CodeStore::get`, of the process; nothing when the plug-in cannot be opened, which is said once on stderr: all programs
/// go on in the interpreter.
std::optional<std::vector<MachineCode>> try_compile(const std::vector<CodeSpec>& specs, CodeTier tier);

/// CodeStore::has, of the process.
bool code_is_at_hand(const CodeSpec& spec, CodeTier tier);

}  // namespace shardarray
