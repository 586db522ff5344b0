// The files that printed texts include, embedded in this plug-in.
#include "cuda/compiler.h"

// The folder comes from CMake. NOLINTBEGIN(bugprone-macro-parentheses): a declared name and a joined literal take none.
#define SHARDARRAY_EMBED(symbol, file)                                                 \
  asm(".section .rodata\n" #symbol ":\n.incbin \"" SHARDARRAY_EMBEDDED_FOLDER "/" file \
      "\"\n.byte 0\n.previous\n");                                                     \
  extern "C" const char symbol[];
// NOLINTEND(bugprone-macro-parentheses)
SHARDARRAY_EMBED(shardarray_text_access, "kernels/access.cuh")
SHARDARRAY_EMBED(shardarray_text_arithmetic, "kernels/arithmetic.cuh")
SHARDARRAY_EMBED(shardarray_text_conv, "kernels/conv.cuh")
SHARDARRAY_EMBED(shardarray_text_device, "kernels/device.cuh")
SHARDARRAY_EMBED(shardarray_text_elements, "kernels/elements.cuh")
SHARDARRAY_EMBED(shardarray_text_exchange, "kernels/exchange.cuh")
SHARDARRAY_EMBED(shardarray_text_gemm, "kernels/gemm.cuh")
SHARDARRAY_EMBED(shardarray_text_halves, "kernels/halves.cuh")
SHARDARRAY_EMBED(shardarray_text_kept_rows, "kernels/kept_rows.cuh")
SHARDARRAY_EMBED(shardarray_text_known_items, "kernels/known_items.cuh")
SHARDARRAY_EMBED(shardarray_text_lanes, "kernels/lanes.cuh")
SHARDARRAY_EMBED(shardarray_text_loop_table, "kernels/loop_table.cuh")
SHARDARRAY_EMBED(shardarray_text_ordinary, "kernels/ordinary.cuh")
SHARDARRAY_EMBED(shardarray_text_pairs, "kernels/pairs.cuh")
SHARDARRAY_EMBED(shardarray_text_printed, "kernels/printed.cuh")
SHARDARRAY_EMBED(shardarray_text_program, "kernels/program.cuh")
SHARDARRAY_EMBED(shardarray_text_program_table, "kernels/program_table.cuh")
SHARDARRAY_EMBED(shardarray_text_scan, "kernels/scan.cuh")
SHARDARRAY_EMBED(shardarray_text_scatter, "kernels/scatter.cuh")
SHARDARRAY_EMBED(shardarray_text_sort, "kernels/sort.cuh")
SHARDARRAY_EMBED(shardarray_text_update, "kernels/update.cuh")
SHARDARRAY_EMBED(shardarray_text_std, "kernels/std_for_nvrtc.cuh")
SHARDARRAY_EMBED(shardarray_text_dtype, "include/shardarray/dtype.h")
SHARDARRAY_EMBED(shardarray_text_reducer, "src/base/reducer.h")
SHARDARRAY_EMBED(shardarray_text_functions, "src/runtime/functions.inc")
SHARDARRAY_EMBED(shardarray_text_instruction_bits, "src/runtime/instruction_bits.h")
SHARDARRAY_EMBED(shardarray_text_kernel, "src/runtime/kernel.h")
SHARDARRAY_EMBED(shardarray_text_teams, "kernels/teams.cuh")
SHARDARRAY_EMBED(shardarray_text_transposed, "kernels/transposed.cuh")
SHARDARRAY_EMBED(shardarray_text_scalar, "src/runtime/scalar.h")

namespace shardarray::cuda {

std::span<const PrintedHeader> printed_headers() {
  static constexpr char standard[] = "#include \"kernels/std_for_nvrtc.cuh\"\n";
  static constexpr char nothing_exported[] = "#define SHARDARRAY_API\n";
  static const PrintedHeader headers[] = {
      {"kernels/access.cuh", shardarray_text_access},
      {"kernels/arithmetic.cuh", shardarray_text_arithmetic},
      {"kernels/conv.cuh", shardarray_text_conv},
      {"kernels/device.cuh", shardarray_text_device},
      {"kernels/elements.cuh", shardarray_text_elements},
      {"kernels/exchange.cuh", shardarray_text_exchange},
      {"kernels/gemm.cuh", shardarray_text_gemm},
      {"kernels/halves.cuh", shardarray_text_halves},
      {"kernels/kept_rows.cuh", shardarray_text_kept_rows},
      {"kernels/known_items.cuh", shardarray_text_known_items},
      {"kernels/lanes.cuh", shardarray_text_lanes},
      {"kernels/loop_table.cuh", shardarray_text_loop_table},
      {"kernels/ordinary.cuh", shardarray_text_ordinary},
      {"kernels/pairs.cuh", shardarray_text_pairs},
      {"kernels/printed.cuh", shardarray_text_printed},
      {"kernels/program.cuh", shardarray_text_program},
      {"kernels/program_table.cuh", shardarray_text_program_table},
      {"kernels/scan.cuh", shardarray_text_scan},
      {"kernels/scatter.cuh", shardarray_text_scatter},
      {"kernels/sort.cuh", shardarray_text_sort},
      {"kernels/update.cuh", shardarray_text_update},
      {"kernels/std_for_nvrtc.cuh", shardarray_text_std},
      {"shardarray/dtype.h", shardarray_text_dtype},
      {"base/reducer.h", shardarray_text_reducer},
      {"runtime/functions.inc", shardarray_text_functions},
      {"runtime/instruction_bits.h", shardarray_text_instruction_bits},
      {"runtime/kernel.h", shardarray_text_kernel},
      {"kernels/teams.cuh", shardarray_text_teams},
      {"kernels/transposed.cuh", shardarray_text_transposed},
      {"runtime/scalar.h", shardarray_text_scalar},
      {"shardarray/export.h", nothing_exported},
      {"cmath", standard},
      {"complex", standard},
      {"cstddef", standard},
      {"cstdint", standard},
      {"iosfwd", standard},
      {"limits", standard},
      {"math.h", standard},
      {"string", standard},
      {"type_traits", standard},
      {"vector", standard},
  };
  return headers;
}

}  // namespace shardarray::cuda
