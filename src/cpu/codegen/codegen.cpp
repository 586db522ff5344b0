#include "cpu/codegen/codegen.h"

#include "abi_hash.h"

namespace shardarray {

const CodePlugin& open_code_plugin(const std::string& path) {
  return static_cast<const CodePlugin&>(open_plugin(path, "code generation", "LLVM 19.1"));
}
std::string code_plugin_path() { return plugin_path("llvm"); }
bool has_code_plugin() { return SHARDARRAY_HAS_PLUGIN; }

}  // namespace shardarray
