// Links objects in memory.
#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>
#include <llvm/ExecutionEngine/Orc/Shared/ExecutorAddress.h>

#include <cmath>
#include <cstring>

#include "cpu/codegen/llvm/generator.h"
#include "runtime/scalar.h"
#include "shardarray/error.h"

namespace shardarray::codegen {
namespace {

namespace orc = llvm::orc;

template <class T> T checked(llvm::Expected<T> x, const char* doing) {
  if (!x) fail(std::string(doing) + ": " + llvm::toString(x.takeError()));
  return std::move(*x);
}

using Unary = double (*)(double);
using Binary = double (*)(double, double);
template <Unary f> double one(double x) { return f(x); }
template <Binary f> double two(double x, double y) { return f(x, y); }

/// What generated code may call: the functions of kernel IR, and the libm functions that LLVM falls back on.
orc::SymbolMap runtime_symbols(orc::ExecutionSession& session) {
  orc::SymbolMap map;
  const auto add = [&](const std::string& name, auto* function) {
    map[session.intern(name)] = {orc::ExecutorAddr::fromPtr(function),
                                 llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
  };
#define SHARDARRAY_UNARY(name) add(function_symbol(Function::name), one<scalar::name>);
#define SHARDARRAY_BINARY(name) add(function_symbol(Function::name), two<scalar::name>);
#include "runtime/functions.inc"
  const std::pair<const char*, float (*)(float)> f32[] = {{"floorf", ::floorf},
                                                          {"ceilf", ::ceilf},
                                                          {"truncf", ::truncf},
                                                          {"nearbyintf", ::nearbyintf},
                                                          {"sqrtf", ::sqrtf}};
  for (const auto& [name, f] : f32) add(name, f);
  const std::pair<const char*, double (*)(double)> f64[] = {
      {"floor", ::floor}, {"ceil", ::ceil}, {"trunc", ::trunc}, {"nearbyint", ::nearbyint}, {"sqrt", ::sqrt}};
  for (const auto& [name, f] : f64) add(name, f);
  add("fmodf", static_cast<float (*)(float, float)>(::fmodf));
  add("fmod", static_cast<double (*)(double, double)>(::fmod));
  add("fmaf", static_cast<float (*)(float, float, float)>(::fmaf));
  add("fma", static_cast<double (*)(double, double, double)>(::fma));
  add("memset", ::memset);
  add("memcpy", ::memcpy);
  add("memmove", ::memmove);
  return map;
}

struct Linked final : LinkedCode {
  std::shared_ptr<Linker> linker;
  orc::JITDylib* library = nullptr;
  ~Linked() override {
    if (library && !linker->abandoned) llvm::consumeError(linker->session->removeJITDylib(*library));
  }
};

}  // namespace

Linker::Linker() {
  session =
      std::make_unique<orc::ExecutionSession>(checked(orc::SelfExecutorProcessControl::Create(), "starting"));
  session->setErrorReporter(
      [](llvm::Error e) { llvm::consumeError(std::move(e)); });  // the failing lookups report them
  layer = std::make_unique<orc::ObjectLinkingLayer>(*session);
}

Linker::~Linker() { llvm::consumeError(session->endSession()); }

std::shared_ptr<Linker> LlvmGenerator::linker() {
  const std::lock_guard lock(mutex_);
  if (!linker_ || linker_->abandoned) linker_ = std::make_shared<Linker>();
  return linker_;
}

std::shared_ptr<const LinkedCode> LlvmGenerator::link(std::span<const char> object, std::size_t count) {
  auto code = std::make_shared<Linked>();
  code->linker = linker();
  call_llvm(code->linker, [&](Linker& l) {
    orc::JITDylib& library = l.session->createBareJITDylib("kernels" + std::to_string(l.count++));
    code->library = &library;
    if (auto e = library.define(orc::absoluteSymbols(runtime_symbols(*l.session))))
      fail(llvm::toString(std::move(e)));
    auto buffer = llvm::MemoryBuffer::getMemBufferCopy({object.data(), object.size()});
    if (auto e = l.layer->add(library, std::move(buffer))) fail(llvm::toString(std::move(e)));
    orc::SymbolLookupSet names;
    for (std::size_t k = 0; k < count; k++) names.add(l.session->intern("k" + std::to_string(k)));
    const auto found =
        checked(l.session->lookup(orc::makeJITDylibSearchOrder(&library), std::move(names)), "linking");
    for (std::size_t k = 0; k < count; k++) {
      code->functions.push_back(found.find(l.session->intern("k" + std::to_string(k)))
                                    ->second.getAddress()
                                    .toPtr<LoopNestFunction>());
    }
  });
  return code;
}

}  // namespace shardarray::codegen
