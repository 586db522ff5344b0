// When kernels become machine code.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <string>

#include "shardarray/error.h"

namespace shardarray {

/// SHARDARRAY_CODEGEN. on: programs that are worth it are compiled; always: all of them, before their first run.
enum class CodegenMode : std::uint8_t { off, on, always };
/// What the variable says. Throws Error for another word.
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
