// The interface between the CPU backend and the plug-in that compiles kernels.
//
// The plug-in libshardarray_llvm.so is opened at the first compilation. This side uses no LLVM types.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cpu/codegen/code_spec.h"
#include "runtime/plugin.h"

namespace shardarray {

/// quick: compiles in a quarter of the time, and the code takes up to a quarter longer. The bits are the same.
enum class CodeTier : std::uint8_t { quick, full };

/// Linked code, which lives as long as this object.
class LinkedCode {
 public:
  virtual ~LinkedCode() = default;
  std::vector<LoopNestFunction> functions;
};

class CodeGenerator {
 public:
  virtual ~CodeGenerator() = default;
  /// Everything besides the specs that objects depend on: CPU, its features, versions of LLVM and of the generator.
  virtual const std::string& target() const = 0;
  /// An object file with one function per spec. Throws CompileError, also where LLVM would end the process. Thread-safe.
  virtual std::vector<char> compile(std::span<const CodeSpec> specs, CodeTier tier) = 0;
  /// Loads an object with `count` functions, made by `compile`, into memory. Throws CompileError.
  virtual std::shared_ptr<const LinkedCode> link(std::span<const char> object, std::size_t count) = 0;
};

struct CodePlugin : Plugin {
  using Make = std::unique_ptr<CodeGenerator>(const char* cpu, const char* features, const char* triple);
  /// For CPU `cpu` with these features (LLVM's names); null: this machine's. For another `triple` objects can be compiled but not linked;
  /// null: this machine's. Throws CompileError for what LLVM does not know.
  Make* make = nullptr;
};
/// Throws CompileError like open_plugin().
const CodePlugin& open_code_plugin(const std::string& path);
std::string code_plugin_path();
/// Whether this library was built with a plug-in.
bool has_code_plugin();

}  // namespace shardarray
