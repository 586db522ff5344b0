#include "runtime/plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <climits>
#include <cstdlib>
#include <filesystem>

#include "abi_hash.h"
#include "shardarray/error.h"

namespace shardarray {

std::uint64_t abi_hash() { return SHARDARRAY_ABI_HASH; }

const Plugin& open_plugin(const std::string& path, const char* purpose, const char* needs) {
  // Never closed: its code may run, and its threads may end, after everything else.
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw CompileError(
        fmt::format("{}: {}. Install the plug-in beside the library, with {}, or name its folder in "
                    "SHARDARRAY_PLUGIN_DIR.",
                    purpose, dlerror(), needs));
  const auto* const plugin = static_cast<const Plugin*>(dlsym(library, plugin_symbol));
  if (plugin == nullptr) {
    throw CompileError(fmt::format("{}: {} is no plug-in, it lacks the symbol '{}'. Remove it.", purpose,
                                   path, plugin_symbol));
  }
  if (plugin->abi != abi_hash()) {
    throw CompileError(
        fmt::format("{}: {} was built for another library: it has version {} ({:016x}), the library {} "
                    "({:016x}). Both must come from one build. Install them together.",
                    purpose, path, plugin->version, plugin->abi, SHARDARRAY_PLUGIN_VERSION, abi_hash()));
  }
  return *plugin;
}

namespace {

/// The folder of the library, or of the program that it is linked into.
std::string own_folder() {
  Dl_info here{};
  link_map* map = nullptr;
  const bool found = dladdr1(reinterpret_cast<const void*>(&open_plugin), &here,
                             reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0;
  // The loader knows where it found a library, even if by a relative path and the current folder has changed. The main program has no name
  // there, and argv is unreliable.
  char folder[PATH_MAX] = "";
  if (found && map != nullptr && map->l_name != nullptr && map->l_name[0] != 0)
    return dlinfo(map, RTLD_DI_ORIGIN, folder) == 0 ? folder : "";
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path().string();
}

}  // namespace

std::string plugin_path(const std::string& name) {
  const char* const chosen = secure_getenv("SHARDARRAY_PLUGIN_DIR");
  const std::string folder = chosen != nullptr && *chosen != 0 ? chosen : own_folder();
  if (folder.empty())
    throw CompileError(
        "environment: the folder of the library, where plug-ins stand, is not known without /proc. Name "
        "it in SHARDARRAY_PLUGIN_DIR.");
  if (folder[0] != '/')
    throw Error(
        fmt::format("environment: SHARDARRAY_PLUGIN_DIR={} is not understood. It must be an absolute path. "
                    "Correct the variable or unset it.",
                    folder));
  return folder + "/libshardarray_" + name + ".so";
}

}  // namespace shardarray
