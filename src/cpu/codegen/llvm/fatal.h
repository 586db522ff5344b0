// What LLVM ends a process for, as exceptions.
//
// LLVM calls a handler, one for all who use the library in a process, and ends the process when that returns. Ours throws where
// this plug-in has called LLVM; for anybody else it does what LLVM does without a handler. The exception leaves LLVM's frames,
// which have no clean-up: what LLVM was working on is half done and must neither be used nor destroyed after it.
#pragma once
#include <atomic>
#include <exception>
#include <memory>
#include <string>

#include "shardarray/error.h"

namespace shardarray::codegen {

/// Throws CompileError.
[[noreturn]] void fail(const std::string& what);

/// What LLVM works on.
struct LlvmState {
  std::atomic<bool> abandoned{false};
};

/// Never used nor destroyed from now on; it can be reached, so that nobody takes it for a leak.
void abandon(std::shared_ptr<LlvmState> state);

/// While it lives, this thread's fatal errors of LLVM are thrown.
class CallsLlvm {
 public:
  CallsLlvm();
  ~CallsLlvm();
  CallsLlvm(const CallsLlvm&) = delete;
  CallsLlvm& operator=(const CallsLlvm&) = delete;
};

/// f(*state). Throws CompileError; `state` is abandoned unless it was thrown on our side.
template <class T, class F> auto call_llvm(const std::shared_ptr<T>& state, F f) {
  try {
    const CallsLlvm calls;
    return f(*state);
  } catch (const CompileError&) { throw; } catch (const std::exception& e) {
    abandon(state);
    fail(std::string("LLVM gave up: ") + e.what());
  }
}

}  // namespace shardarray::codegen
