#include "cpu/codegen.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "abi_hash.h"
#include "shardarray/error.h"

namespace shardarray {

std::uint64_t abi_hash() { return SHARDARRAY_ABI_HASH; }

const CodePlugin& open_code_plugin(const std::string& path) {
  // Never closed: code may run, and threads may end, after everything else.
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw CompileError(fmt::format(
        "code generation: {}. Install the plug-in beside the library, with LLVM 19.1.", dlerror()));
  const auto* const plugin = static_cast<const CodePlugin*>(dlsym(library, code_plugin_symbol));
  if (plugin == nullptr) {
    throw CompileError(fmt::format("code generation: {} is no plug-in, it lacks the symbol '{}'. Remove it.",
                                   path, code_plugin_symbol));
  }
  if (plugin->abi != abi_hash()) {
    throw CompileError(
        fmt::format("code generation: {} was built for another library: it has version {} ({:016x}), the "
                    "library {} ({:016x}). "
                    "Both must come from one build. Install them together.",
                    path, plugin->version, plugin->abi, SHARDARRAY_PLUGIN_VERSION, abi_hash()));
  }
  return *plugin;
}

std::string code_plugin_path() {
  namespace fs = std::filesystem;
  constexpr const char* name = "libshardarray_llvm.so";
  Dl_info here{};
  dladdr(reinterpret_cast<const void*>(&open_code_plugin), &here);
  // A program that contains the library itself: /proc knows its path, argv need not.
  std::error_code ignored;
  fs::path file = here.dli_fname ? here.dli_fname : "";
  if (file.is_relative() || !fs::exists(file, ignored)) file = fs::read_symlink("/proc/self/exe", ignored);
  const fs::path folder = file.parent_path();
  // Programs of the build tree stand in folders of their own.
  for (const fs::path& p : {folder / name, folder.parent_path() / name}) {
    if (fs::exists(p, ignored)) return p;
  }
  return folder / name;
}

}  // namespace shardarray
