// The files that printed texts include, as bytes of this plug-in.
#include "cuda/compiler.h"

// The folder comes from CMake. NOLINTBEGIN(bugprone-macro-parentheses): a declared name and a joined literal take none.
#define SHARDARRAY_EMBED(symbol, file)                                                 \
  asm(".section .rodata\n" #symbol ":\n.incbin \"" SHARDARRAY_EMBEDDED_FOLDER "/" file \
      "\"\n.byte 0\n.previous\n");                                                     \
  extern "C" const char symbol[];
// NOLINTEND(bugprone-macro-parentheses)
SHARDARRAY_EMBED(shardarray_text_access, "kernels/access.cuh")
SHARDARRAY_EMBED(shardarray_text_device, "kernels/device.cuh")
SHARDARRAY_EMBED(shardarray_text_lanes, "kernels/lanes.cuh")
SHARDARRAY_EMBED(shardarray_text_loop_table, "kernels/loop_table.cuh")
SHARDARRAY_EMBED(shardarray_text_printed, "kernels/printed.cuh")
SHARDARRAY_EMBED(shardarray_text_std, "kernels/std_for_nvrtc.cuh")
SHARDARRAY_EMBED(shardarray_text_scalar, "src/runtime/scalar.h")

namespace shardarray::cuda {

std::span<const PrintedHeader> printed_headers() {
  static constexpr char standard[] = "#include \"kernels/std_for_nvrtc.cuh\"\n";
  static const PrintedHeader headers[] = {
      {"kernels/access.cuh", shardarray_text_access},
      {"kernels/device.cuh", shardarray_text_device},
      {"kernels/lanes.cuh", shardarray_text_lanes},
      {"kernels/loop_table.cuh", shardarray_text_loop_table},
      {"kernels/printed.cuh", shardarray_text_printed},
      {"kernels/std_for_nvrtc.cuh", shardarray_text_std},
      {"runtime/scalar.h", shardarray_text_scalar},
      {"cmath", standard},
      {"cstddef", standard},
      {"cstdint", standard},
      {"limits", standard},
      {"math.h", standard},
      {"type_traits", standard},
  };
  return headers;
}

}  // namespace shardarray::cuda
