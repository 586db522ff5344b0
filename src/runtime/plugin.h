// Plug-ins: shared objects beside the library for what needs other libraries (LLVM, CUDA). They are opened at first use, never closed, and
// do not link the core library: shared definitions are in the headers of floors 0 to 2.
#pragma once
#include <cstdint>
#include <string>

namespace shardarray {

/// The start of a plug-in's symbol `shardarray_plugin`; derived structs add what it provides.
struct Plugin {
  std::uint64_t abi = 0;  ///< hash of the shared headers and the compiler
  const char* version = "";
};
inline constexpr char plugin_symbol[] = "shardarray_plugin";

/// The hash that this library was built with.
std::uint64_t abi_hash();

/// The path of the plug-in libshardarray_NAME.so: in the folder SHARDARRAY_PLUGIN_DIR, else beside the library (or the program that
/// contains it), nowhere else. The variable is ignored in programs with elevated privileges. Throws Error if it is not an absolute path.
std::string plugin_path(const std::string& name);

/// Opens a plug-in. Messages name `purpose` ("code generation") and what else it needs ("LLVM 19.1"). Throws CompileError if it is missing,
/// cannot be loaded or was built for another library.
const Plugin& open_plugin(const std::string& path, const char* purpose, const char* needs);

}  // namespace shardarray
