// The seam between the CPU backend and the plug-in that makes machine code of kernels.
//
// The plug-in libshardarray_llvm.so is opened at the first compile. No type of LLVM is known on this side.
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

/// quick: compiled in a quarter of the time, runs up to a quarter longer. The bits are the same.
enum class CodeTier : std::uint8_t { quick, full };

/// Code in memory, as long as this lives.
class LinkedCode {
 public:
  virtual ~LinkedCode() = default;
  std::vector<LoopNestFunction> functions;
};

class CodeGenerator {
 public:
  virtual ~CodeGenerator() = default;
  /// All that objects depend on beside the specs: the CPU, its features, the versions of LLVM and of the generator.
  virtual const std::string& target() const = 0;
  /// An object file with one function for each spec. Throws CompileError, also where LLVM would end the process. May be called
  /// by several threads at once.
  virtual std::vector<char> compile(std::span<const CodeSpec> specs, CodeTier tier) = 0;
  /// Brings an object of `count` functions, made by `compile`, into memory. Throws CompileError.
  virtual std::shared_ptr<const LinkedCode> link(std::span<const char> object, std::size_t count) = 0;
};

struct CodePlugin : Plugin {
  using Make = std::unique_ptr<CodeGenerator>(const char* cpu, const char* features, const char* triple);
  /// For the CPU `cpu` with these features (LLVM's spelling); null: those of this machine. Of another kind of machine,
  /// `triple`, objects can be made, not linked; null: of this one. Throws CompileError for one that LLVM does not know.
  Make* make = nullptr;
};
/// Throws CompileError as open_plugin().
const CodePlugin& open_code_plugin(const std::string& path);
std::string code_plugin_path();
/// Whether this library was built with a plug-in.
bool has_code_plugin();

}  // namespace shardarray
