// When kernels are compiled to machine code.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <string>

#include "shardarray/error.h"

namespace shardarray {

/// SHARDARRAY_CODEGEN. on: compile programs that are worth it; always: compile all, before their first run.
enum class CodegenMode : std::uint8_t { off, on, always };
/// The value of the variable. Throws Error if it is unknown.
inline CodegenMode codegen_mode_of_environment() {
  const char* const text = std::getenv("SHARDARRAY_CODEGEN");
  const std::string s = text != nullptr ? text : "";
  if (s.empty() || s == "on") return CodegenMode::on;
  if (s == "off") return CodegenMode::off;
  if (s == "always") return CodegenMode::always;
  throw Error("environment: SHARDARRAY_CODEGEN=" + s +
              " is not understood. It must be on, off or always. Correct the variable or unset it.");
}

}  // namespace shardarray
