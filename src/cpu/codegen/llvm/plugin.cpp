// The entry point that the core library looks up.
#include "abi_hash.h"
#include "cpu/codegen/llvm/generator.h"
#include "shardarray/version.h"

namespace {

std::unique_ptr<shardarray::CodeGenerator> make_generator(const char* cpu, const char* features,
                                                          const char* triple) {
  return std::make_unique<shardarray::codegen::LlvmGenerator>(cpu ? cpu : "", features ? features : "",
                                                              triple ? triple : "");
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const shardarray::CodePlugin shardarray_plugin;
const shardarray::CodePlugin shardarray_plugin = {{SHARDARRAY_ABI_HASH, SHARDARRAY_PLUGIN_VERSION},
                                                  make_generator};
