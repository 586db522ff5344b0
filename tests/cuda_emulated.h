// Kernels compiled for emulated blocks (cuda/emulated_block.h).
#pragma once
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernel_helpers.h"
#include "kernels/device.cuh"

namespace shardarray::test {

inline constexpr unsigned thread_orders[] = {0, 1, 7};
inline constexpr const char* emulator = "#include \"tests/cuda/emulated_block.h\"\n";

/// Runs a kernel of an emulated text; returns null, or what is wrong.
using Emulated = const char* (*)(unsigned blocks, unsigned items, unsigned threads, unsigned order,
                                 const void* table, void* memory, const void* bases);
/// Its text, behind that of the kernel. `clustered`: the blocks of a launch are one cluster.
inline std::string runner_of(const std::string& kernel, bool clustered = false) {
  return "extern \"C\" const char* run_" + kernel +
         "(unsigned blocks, unsigned items, unsigned threads, unsigned order, const void* table, void* "
         "memory, "
         "const void* bases) { return emulate(" +
         kernel + ", blocks, items, threads, order, table, memory, bases, " + (clustered ? "true" : "false") +
         "); }\n";
}
inline Emulated emulated(const CompiledText& text, const std::string& kernel) {
  const auto run = reinterpret_cast<Emulated>(text.symbol("run_" + kernel));
  REQUIRE_MESSAGE((run != nullptr), kernel);
  return run;
}

inline device::Bases few_bases_of(const std::vector<void*>& bases) {
  device::Bases all{};
  REQUIRE(bases.size() <= device::few_bases);
  for (std::size_t k = 0; k < bases.size(); k++) all.few[k] = reinterpret_cast<std::uint64_t>(bases[k]);
  return all;
}

}  // namespace shardarray::test
