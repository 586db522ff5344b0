// CodeStore: this process's machine code by kernel, compiled or taken from the object cache.
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

/// The CPU's mode: the environment's, until another one is set.
CodegenMode codegen_mode();
/// Returns the previous mode.
CodegenMode set_codegen_mode(CodegenMode m);

/// A kernel's code, which lives as long as this object. Null function: it could not be compiled.
struct MachineCode {
  std::shared_ptr<const LinkedCode> module;
  LoopNestFunction function = nullptr;
};

class CodeStore {
 public:
  /// The process's store; never destroyed. Its plug-in is opened at the first use. Throws CompileError.
  static CodeStore& instance();
  /// Replaces the process's store (tests). Null: the real one. Returns the previous one, null for the real one.
  static CodeStore* set_instance(CodeStore* store);
  CodeStore(std::unique_ptr<CodeGenerator> generator, const std::string& cache_folder);

  /// The code of every spec; each is compiled and cached on disk separately. A spec that fails has no function this time, which is reported
  /// once on stderr; it is retried at the next call.
  std::vector<MachineCode> get(const std::vector<CodeSpec>& specs, CodeTier tier);

  /// Whether get() would compile nothing.
  bool has(const CodeSpec& spec, CodeTier tier);

  struct Stats {
    int compiled = 0, loaded = 0,
        failed = 0;  ///< numbers of kernels compiled, loaded from disk, failed
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
  std::deque<std::shared_ptr<const LinkedCode>> recent_;  // kept although no program needs them now
  std::vector<std::string> said_;
  Stats stats_;
  int exits_ = 0;  // atexit handlers registered
};

/// CodeStore::get of the process's store; none if the plug-in cannot be opened, which is reported once on stderr: all programs then stay in
/// the interpreter.
std::optional<MachineCode> try_compile(const CodeSpec& spec, CodeTier tier);

/// CodeStore::has of the process's store.
bool code_is_at_hand(const CodeSpec& spec, CodeTier tier);

}  // namespace shardarray
