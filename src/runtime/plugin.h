// Plug-ins: shared objects beside the library that bring what needs libraries of their own (LLVM, CUDA). They are opened at their
// first use and never closed, and link nothing of the core library: what both know stands in the headers of floors 0 to 2.
#pragma once
#include <cstdint>
#include <string>

namespace shardarray {

/// What the symbol `shardarray_plugin` of a plug-in begins with; what it makes follows in a struct derived from this one.
struct Plugin {
  std::uint64_t abi = 0;  ///< hash of the headers that both sides see, and of the compiler
  const char* version = "";
};
inline constexpr char plugin_symbol[] = "shardarray_plugin";

/// The hash of the headers and the compiler that this library was built with.
std::uint64_t abi_hash();

/// Where the plug-in libshardarray_NAME.so stands: in the folder SHARDARRAY_PLUGIN_DIR, else beside the library (or the program
/// that contains it), and nowhere else. The variable counts only where the program has the rights of its user and no others.
/// Throws Error for a folder that is not absolute.
std::string plugin_path(const std::string& name);

/// Opens a plug-in, for messages in the name of `purpose` ("code generation"), with what it needs besides ("LLVM 19.1").
/// Throws CompileError when it is missing, cannot be loaded or was built for another library.
const Plugin& open_plugin(const std::string& path, const char* purpose, const char* needs);

}  // namespace shardarray
