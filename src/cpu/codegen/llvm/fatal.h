// Turns LLVM's fatal errors into exceptions.
//
// LLVM calls one process-wide handler, and ends the process when it returns. Ours throws if this plug-in called LLVM; for other users it
// does what LLVM does without a handler. The exception unwinds LLVM's frames without cleanup: the state that LLVM worked on is broken, and
// must be neither used nor destroyed.
#pragma once
#include <atomic>
#include <exception>
#include <memory>
#include <string>

#include "shardarray/error.h"

namespace shardarray::codegen {

/// Throws CompileError.
[[noreturn]] void fail(const std::string& what);

/// State that LLVM works on.
struct LlvmState {
  std::atomic<bool> abandoned{false};
};

/// Neither used nor destroyed from now on; kept reachable, so that leak checkers ignore it.
void abandon(std::shared_ptr<LlvmState> state);

/// During its lifetime, fatal errors of LLVM in this thread are thrown.
class CallsLlvm {
 public:
  CallsLlvm();
  ~CallsLlvm();
  CallsLlvm(const CallsLlvm&) = delete;
  CallsLlvm& operator=(const CallsLlvm&) = delete;
};

/// Returns f(*state). Throws CompileError; abandons `state` unless our own code threw it.
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
