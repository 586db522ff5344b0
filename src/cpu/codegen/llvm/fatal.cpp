#include "cpu/codegen/llvm/fatal.h"

#include <llvm/Support/ErrorHandling.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

namespace shardarray::codegen {
namespace {

thread_local int calls_of_ours = 0;

void on_fatal_error(void*, const char* reason, bool) {
  if (calls_of_ours > 0) throw std::runtime_error(reason);
  std::fprintf(stderr, "LLVM ERROR: %s\n", reason);  // then LLVM ends the process
}

void on_bad_alloc(void*, const char* reason, bool) {
  if (calls_of_ours > 0) throw std::bad_alloc();
  std::fprintf(stderr, "LLVM ERROR: out of memory\n%s\n", reason);
  std::abort();
}

}  // namespace

void fail(const std::string& what) {
  throw CompileError("code generation: " + what + ". Please report this.");
}

void abandon(std::shared_ptr<LlvmState> state) {
  static std::mutex mutex;
  static auto* const all = new std::vector<std::shared_ptr<LlvmState>>;
  state->abandoned = true;
  const std::lock_guard lock(mutex);
  all->push_back(std::move(state));
}

CallsLlvm::CallsLlvm() {
  static std::once_flag handlers;
  std::call_once(handlers, [] {
    llvm::remove_fatal_error_handler();  // LLVM asserts that no handler is replaced
    llvm::install_fatal_error_handler(on_fatal_error);
    llvm::remove_bad_alloc_error_handler();
    llvm::install_bad_alloc_error_handler(on_bad_alloc);
  });
  calls_of_ours++;
}
CallsLlvm::~CallsLlvm() { calls_of_ours--; }

}  // namespace shardarray::codegen
